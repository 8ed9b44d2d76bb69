"""Any order of running, forking, cutting and dropping sequences on one pool, against plain lists of ids."""

import copy
import dataclasses

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from schedule_examples import SAME, TOY, apart, oracle, prompts

from prefill_decode.model import forward
from prefill_decode.schedules import BlockPool, PagedKVCache

WHICH = st.integers(0, 99)  # modulo the number of sequences


class Sequences(RuleBasedStateMachine):
    @initialize(size=st.integers(1, 5), order=st.integers(3, 9).flatmap(lambda n: st.permutations(range(n))))
    def make_a_pool(self, size, order):
        self.pool = BlockPool(TOY.config, size, len(order), np.float64, order)
        self.live = [(PagedKVCache.on(self.pool), [])]

    @rule(ids=prompts(5))
    def start(self, ids):
        self.live.append((PagedKVCache.on(self.pool), []))
        self.run(-1, ids)

    @rule(which=WHICH, ids=prompts(5))
    def run(self, which, ids):
        cache, text = self.pick(which)
        need, before = self.blocks_needed(cache, len(ids)), self.state()
        if need <= len(self.pool.free):
            assert apart(forward(TOY, ids, cache), oracle(text + ids)[len(text) :]) < SAME
            text += ids
            return
        with pytest.raises(ValueError, match=f"^{need} more blocks of {self.pool.block_size} positions are needed, "):
            forward(TOY, ids, cache)
        assert self.state() == before

    @rule(which=WHICH, ids=prompts(5))
    def break_off(self, which, ids):
        cache, text = self.pick(which)
        if self.blocks_needed(cache, len(ids)) > len(self.pool.free):
            return
        with pytest.raises(KeyboardInterrupt):
            forward(dataclasses.replace(TOY, attend=interrupted), ids, cache)
        assert len(cache) == len(text)

    @rule(which=WHICH, n=WHICH)
    def fork(self, which, n):
        cache, text = self.pick(which)
        n %= len(text) + 1
        free = list(self.pool.free)
        self.live.append((cache.fork(n), text[:n]))
        assert self.pool.free == free  # no key is copied

    @rule(which=WHICH, n=WHICH)
    def truncate(self, which, n):
        cache, text = self.pick(which)
        n %= len(text) + 1
        cache.truncate(n)
        del text[n:]
        assert len(cache.table) == self.pool.blocks_for(n)

    @precondition(lambda self: len(self.live) > 1)
    @rule(which=WHICH)
    def drop(self, which):
        self.live.pop(which % len(self.live))[0].truncate(0)

    @invariant()
    def every_sequence_goes_on_from_its_own_ids(self):
        for i, (cache, text) in enumerate(self.live):
            assert len(cache) == len(text)
            if text:
                live = copy.deepcopy(self.live)  # the last token runs again, where nobody else is in the way
                for other, _ in live[:i] + live[i + 1 :]:
                    other.truncate(0)
                alone = live[i][0]
                alone.truncate(len(text) - 1)
                assert apart(forward(TOY, text[-1:], alone)[0], oracle(text)[-1]) < SAME

    @invariant()
    def every_block_knows_who_reads_it(self):
        tables = [cache.table for cache, _ in self.live]
        users = [sum(block in table for table in tables) for block in range(self.pool.n_blocks)]
        assert self.pool.users == users
        assert sorted(self.pool.free) == [block for block, n in enumerate(users) if not n]

    def pick(self, which):
        return self.live[which % len(self.live)]

    def state(self):
        return copy.deepcopy((self.pool.free, self.pool.users, [(cache.table, len(cache)) for cache, _ in self.live]))

    def blocks_needed(self, cache, more):
        """Count blocks that new rows go to and that are not there yet, or not the sequence's own."""
        others = {block for other, _ in self.live if other is not cache for block in other.table}
        places = {position // self.pool.block_size for position in range(len(cache), len(cache) + more)}
        missing = sum(place >= len(cache.table) for place in places)
        # a pass that broke off has left blocks behind its entries; they are nobody else's
        return missing + sum(place < len(cache.table) and cache.table[place] in others for place in places)


def interrupted(q, k, v, mask, trace, rounded):
    raise KeyboardInterrupt  # in layer 0: its rows are stored, the last layer's are not


TestSequences = Sequences.TestCase
TestSequences.settings = settings(max_examples=100, stateful_step_count=30)
