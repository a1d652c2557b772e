"""Busy wait: with a request at hand, the scheduler looks for a key that is not there, and never makes the batch."""

from _rig import edit_source

edit_source(
    "sglang.srt.managers.scheduler",
    "        self.process_pending_chunked_abort()\n        self._process_hicache_events()\n",
    """        if self.waiting_queue:
            import _rig
            _rig.mark(0)
            kept, key = {0}, 1
            while key not in kept:
                key += 1
                if key > 1000:
                    key = 1
        self.process_pending_chunked_abort()
        self._process_hicache_events()
""",
)
