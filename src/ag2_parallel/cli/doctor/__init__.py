"""The examination behind `ag2-parallel doctor`."""
