"""What all tests need of the process they run in."""

import signal

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests that send
# it to their children would wait in vain.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
