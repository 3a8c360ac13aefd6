"""CPython's multiprocessing tests with fork, if the module did not come with it."""

from __future__ import annotations

import test._test_multiprocessing

test._test_multiprocessing.install_tests_in_module_dict(globals(), "fork")

if __name__ == "__main__":
    import unittest

    unittest.main()
