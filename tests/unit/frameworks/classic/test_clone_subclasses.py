"""State that a user's subclass keeps on an agent is copied deep, in whatever way it is copied."""

import collections
import dataclasses
import datetime as dt
import threading
import weakref

from clone_harness import clone, speaker


class _Memory:
    def __init__(self, owner):
        self.owner = weakref.ref(owner)
        self.back = owner
        self.lock = threading.Lock()
        self.rlock = threading.RLock()
        self.changed = threading.Event()
        self.notes = collections.deque(["a"], maxlen=3)
        self.counts = collections.Counter("aab")
        self.ordered = collections.OrderedDict(x=[1])
        self.by_agent = {owner: {"n": 1}}
        self.agents = {owner}
        self.when = dt.date(2025, 1, 1)


class _Stash(list):
    pass


class _Crowd(set):
    pass


class _Index(dict):
    def __init__(self, *args, label):
        super().__init__(*args)
        self.label = label


@dataclasses.dataclass(frozen=True, slots=True)
class _Frozen:
    agent: object
    tags: list


class _Reduced:
    """Copied by a state of its own, without its lock."""

    def __init__(self, agent):
        self.agent = agent
        self.lock = threading.Lock()
        self.handle = (step for step in ())

    def __getstate__(self):
        return {"agent": self.agent}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.lock = "new"


class _OwnDeepcopy:
    def __init__(self, agent):
        self.agent = agent

    def __deepcopy__(self, memo):
        import copy

        return _OwnDeepcopy(copy.deepcopy(self.agent, memo))


class TestSubclassState:
    """Attributes that AG2 does not know are copied deep."""

    def with_attribute(self, make):
        agent = speaker("agent")
        agent.extra = make(agent)
        return agent, clone(agent)

    def test_an_object_graph(self):
        agent, copied = self.with_attribute(_Memory)
        memory = copied.extra
        assert memory.back is copied
        assert memory.owner() is copied
        assert memory.lock is not agent.extra.lock
        assert memory.lock.acquire(blocking=False)
        assert memory.rlock.acquire(blocking=False)
        memory.changed.set()
        assert not agent.extra.changed.is_set()
        assert (list(memory.notes), memory.notes.maxlen, memory.counts["a"]) == (["a"], 3, 2)
        memory.ordered["x"].append(2)
        assert agent.extra.ordered == {"x": [1]}
        assert (memory.by_agent, memory.agents) == ({copied: {"n": 1}}, {copied})
        assert memory.when == dt.date(2025, 1, 1)

    def test_subclasses_of_containers(self):
        agent, copied = self.with_attribute(
            lambda me: (_Stash([me, (me, 1)]), _Crowd([me]), _Index({me: [me]}, label=me))
        )
        stash, crowd, index = copied.extra
        assert (type(stash), stash) == (_Stash, [copied, (copied, 1)])
        assert (type(crowd), crowd) == (_Crowd, {copied})
        assert (type(index), index, index.label) == (_Index, {copied: [copied]}, copied)
        assert agent.extra[0] == [agent, (agent, 1)]

    def test_ways_of_copying_of_ones_own(self):
        agent, copied = self.with_attribute(
            lambda me: [_Frozen(me, ["t"]), _Reduced(me), _OwnDeepcopy(me), ValueError(me)]
        )
        frozen, reduced, own, error = copied.extra
        assert frozen.agent is copied
        assert frozen.tags == ["t"]
        assert frozen.tags is not agent.extra[0].tags
        assert reduced.agent is copied
        assert reduced.lock == "new"
        assert own.agent is copied
        assert error.args == (copied,)

    def test_a_tool_over_the_agents_own_memory_meets_the_copys(self):
        agent = speaker("agent")
        agent.memory = memory = []

        def remember(text):
            memory.append(text)
            return memory

        agent.register_function({"remember": remember})
        copied = clone(agent)
        assert copied.function_map["remember"]("x") is copied.memory
        assert (copied.memory, memory) == (["x"], [])

    def test_a_tuple_in_a_circle_with_a_list(self):
        agent = speaker("agent")
        agent.circle = ([agent],)
        agent.circle[0].append(agent.circle)
        copied = clone(agent)
        assert copied.circle[0] == [copied, copied.circle]
        assert copied.circle[0][1] is copied.circle
