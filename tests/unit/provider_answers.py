"""Error answers of model servers as they were seen: provider, status, body, kind, tokens asked and allowed, wait."""

import json

GOOGLE = "type.googleapis.com/google.rpc."


def openai(message, type_="invalid_request_error", code=None, **more):
    return {"error": {"message": message, "type": type_, "param": None, "code": code} | more}


def vllm(message, type_="BadRequestError", code=400):
    return {"object": "error", "message": message, "type": type_, "param": None, "code": code}


def anthropic(type_, message):
    return {"type": "error", "error": {"type": type_, "message": message}, "request_id": "req_0"}


def gemini(code, status, message, *details):
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def violation(quota):
    return {"@type": GOOGLE + "QuotaFailure", "violations": [{"quotaMetric": "requests", "quotaId": quota}]}


def retry_info(delay):
    return {"@type": GOOGLE + "RetryInfo", "retryDelay": delay}


PLAN = (
    "You exceeded your current quota, please check your plan and billing details. For more information on this "
    "error, head to: https://ai.google.dev/gemini-api/docs/rate-limits."
)
FILTERED = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content management policy. Please modify "
    "your prompt and retry."
)
INNER = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"hate": {"filtered": True}}}
TPM = (
    "Request too large for gpt-4o in organization org-0 on tokens per min (TPM): Limit 30000, Requested 54321. The "
    "input or output tokens must be reduced in order to run successfully."
)
CREDIT = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade."

CONTEXT = [
    (
        "openai",
        400,
        openai(
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.",
            code="context_length_exceeded",
        ),
        (9031, 8192),
    ),
    ("openai", 400, openai("Input is too large.", code="context_length_exceeded"), (None, None)),
    ("openai", 429, openai(TPM, "tokens", "rate_limit_exceeded"), (54321, 30000)),
    ("groq", 413, openai(TPM, "tokens", "rate_limit_exceeded"), (54321, 30000)),
    (
        "vllm",
        400,
        vllm(
            "This model's maximum context length is 16384 tokens. However, you requested 122946 tokens (112946 in the "
            "messages, 10000 in the completion). Please reduce the length of the messages or completion."
        ),
        (122946, 16384),
    ),
    (
        "vllm",
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 10000. This model's maximum context length is 16384 "
            "tokens and your request has 12294 input tokens (10000 > 16384 - 12294).",
            "BadRequestError",
            400,
        ),
        (22294, 16384),
    ),
    (
        "vllm",
        400,
        openai(
            "You passed 4097 input tokens and requested 100 output tokens. However, the model's context length is only "
            "4096 tokens, resulting in a maximum input length of 3996 tokens.",
            "BadRequestError",
            400,
        ),
        (4197, 4096),
    ),
    (
        "vllm",
        400,
        vllm("The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
        (5000, 4096),
    ),
    (
        "anthropic",
        400,
        anthropic("invalid_request_error", "prompt is too long: 209353 tokens > 199999 maximum"),
        (209353, 199999),
    ),
    (
        "anthropic",
        400,
        anthropic(
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
        ),
        (209573, 200000),
    ),
    ("anthropic", 413, anthropic("request_too_large", "Request exceeds the maximum size"), (None, None)),
    (
        "gemini",
        400,
        gemini(
            400,
            "INVALID_ARGUMENT",
            "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        ),
        (1200293, 1048576),
    ),
    (
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing the context size",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 14429,
                "n_ctx": 8192,
            }
        },
        (14429, 8192),
    ),
    (
        "llama.cpp",
        400,
        openai("request (4390 tokens) exceeds the available context size (4096 tokens), try increasing it"),
        (4390, 4096),
    ),
    (
        "llama.cpp",
        500,
        {"error": {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}},
        (None, None),
    ),
    (
        "llama-cpp-python",
        400,
        openai("Requested tokens (2285) exceed context window of 2048", "internal_server_error"),
        (2285, 2048),
    ),
    ("ollama", 400, {"error": "the input length exceeds the context length"}, (None, None)),
    (
        "mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context "
            "length",
            "type": "invalid_request_prompt",
            "code": "3051",
        },
        (40000, 32768),
    ),
    (
        "tgi",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` "
            "tokens and 512 `max_new_tokens`",
            "error_type": "validation",
        },
        (5512, 4096),
    ),
    (
        "bedrock",
        400,
        {"Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."}},
        (None, None),
    ),
    (
        "a gateway around gemini",
        400,
        {
            "error": {
                "message": json.dumps(
                    gemini(400, "INVALID_ARGUMENT", "The input token count (7) exceeds the maximum number of tokens "
                           "allowed (5).")
                ),
                "code": 400,
            }
        },
        (7, 5),
    ),
]  # fmt: skip
"""Requests that are too long."""

ANSWERS = [
    ("openai", 429, openai(PLAN, "insufficient_quota", "insufficient_quota"), "quota", None),
    ("openai", 429, openai("Your account is not active", "billing_not_active", "billing_not_active"), "quota", None),
    (
        "openai",
        429,
        openai(
            "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 1500. Please try "
            "again in 1.2s.",
            "tokens",
            "rate_limit_exceeded",
        ),
        "rate_limit",
        1.2,
    ),
    (
        "openai",
        429,
        openai("Rate limit reached. Please try again in 320ms.", "requests", "rate_limit_exceeded"),
        "rate_limit",
        0.32,
    ),
    ("openai", 401, openai("Incorrect API key provided: sk-***", code="invalid_api_key"), "authentication", None),
    (
        "openai",
        404,
        openai("The model `gpt-9` does not exist or you do not have access to it.", code="model_not_found"),
        "configuration",
        None,
    ),
    (
        "openai",
        400,
        openai("Invalid prompt: your prompt was flagged as potentially violating our usage policy.", code="invalid_prompt"),
        "content_filter",
        None,
    ),
    ("openai", 400, openai("Unsupported parameter: 'max_tokens'", code="unsupported_parameter"), "configuration", None),
    ("openai", 500, openai("The server had an error", "server_error"), "provider", None),
    ("openai", 503, openai("The engine is currently overloaded", "engine_overloaded"), "provider", None),
    ("openai, in a stream", None, openai("The server had an error", "server_error"), "provider", None),
    ("openai, in a stream", None, openai(PLAN, "insufficient_quota", "insufficient_quota"), "quota", None),
    ("azure", 400, openai(FILTERED, None, "content_filter", status=400, innererror=INNER), "content_filter", None),
    ("azure", 404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}},
     "configuration", None),
    ("azure", 401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key."}},
     "authentication", None),
    (
        "azure",
        429,
        {"error": {"code": "429", "message": "Requests have exceeded token rate limit. Please retry after 26 seconds."}},
        "rate_limit",
        26,
    ),
    ("anthropic", 529, anthropic("overloaded_error", "Overloaded"), "provider", None),
    ("anthropic, in a stream", None, anthropic("overloaded_error", "Overloaded"), "provider", None),
    ("anthropic", 400, anthropic("invalid_request_error", CREDIT), "quota", None),
    ("anthropic", 402, anthropic("billing_error", "There is an issue with your billing"), "quota", None),
    ("anthropic", 400, anthropic("invalid_request_error", "You have reached your specified API usage limits."),
     "quota", None),
    ("anthropic", 400, anthropic("invalid_request_error", "Output blocked by content filtering policy"),
     "content_filter", None),
    ("anthropic", 400, anthropic("invalid_request_error", "max_tokens: 10000 > 4096, which is the maximum allowed"),
     "configuration", None),
    ("anthropic", 401, anthropic("authentication_error", "invalid x-api-key"), "authentication", None),
    ("anthropic", 403, anthropic("permission_error", "Your API key may not use this"), "authentication", None),
    ("anthropic", 404, anthropic("not_found_error", "model: claude-9"), "configuration", None),
    ("anthropic", 429, anthropic("rate_limit_error", "This request would exceed your rate limit"), "rate_limit", None),
    ("anthropic", 500, anthropic("api_error", "Internal server error"), "provider", None),
    ("anthropic", 504, anthropic("timeout_error", "Timed out"), "timeout", None),
    ("gemini", 429, gemini(429, "RESOURCE_EXHAUSTED", PLAN), "quota", None),
    (
        "gemini",
        429,
        gemini(
            429,
            "RESOURCE_EXHAUSTED",
            PLAN,
            violation("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
            retry_info("36s"),
        ),
        "quota",
        None,
    ),
    (
        "gemini",
        429,
        gemini(
            429,
            "RESOURCE_EXHAUSTED",
            PLAN,
            violation("GenerateContentInputTokensPerModelPerMinute-FreeTier"),
            retry_info("26s"),
        ),
        "rate_limit",
        26,
    ),
    ("gemini", 429, [gemini(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Please try again later.")],
     "rate_limit", None),
    (
        "gemini",
        429,
        gemini(429, "RESOURCE_EXHAUSTED", "Quota exceeded for quota metric 'Requests' and limit 'Requests per day'"),
        "quota",
        None,
    ),
    (
        "gemini",
        400,
        gemini(
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            {"@type": GOOGLE + "ErrorInfo", "reason": "API_KEY_INVALID"},
        ),
        "authentication",
        None,
    ),
    ("gemini", 403, gemini(403, "PERMISSION_DENIED", "Permission denied"), "authentication", None),
    ("gemini", 404, gemini(404, "NOT_FOUND", "models/gemini-0 is not found for API version v1beta"),
     "configuration", None),
    ("gemini", 503, gemini(503, "UNAVAILABLE", "The model is overloaded. Please try again later."), "provider", None),
    ("gemini", 504, gemini(504, "DEADLINE_EXCEEDED", "Deadline expired"), "timeout", None),
    ("vllm", 404, vllm("The model `m` does not exist.", "NotFoundError", 404), "configuration", None),
    ("vllm", 401, {"error": "Unauthorized"}, "authentication", None),
    ("llama.cpp", 503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}},
     "provider", None),
    ("llama.cpp", 401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}},
     "authentication", None),
    ("ollama", 404, {"error": "model 'qwen3' not found, try pulling it first"}, "configuration", None),
    ("ollama", 503, {"error": "server busy, please try again.  maximum pending requests exceeded"}, "provider", None),
    ("deepseek", 402, openai("Insufficient Balance", "unknown_error"), "quota", None),
    ("mistral", 400, {"object": "error", "message": "Invalid model: m", "type": "invalid_model", "code": "1500"},
     "configuration", None),
    ("bedrock", 400, {"Error": {"Code": "ThrottlingException", "Message": "Too many requests"}}, "rate_limit", None),
    ("bedrock", 403, {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "authentication", None),
    ("bedrock", 429, {"Error": {"Code": "ThrottlingException", "Message": "Too many tokens per day, please wait"}},
     "quota", None),
    ("a web server", 502, "<html><h1>502 Bad Gateway</h1></html>", "provider", None),
    ("a web server", 404, "404 page not found", "configuration", None),
    ("fastapi", 422, {"detail": [{"loc": ["body"], "msg": "Field required", "input": "maximum context length"}]},
     "configuration", None),
]  # fmt: skip
"""All other answers."""
