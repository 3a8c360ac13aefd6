"""Workers wait at a condition for rare alarms; nearly all the time there is nothing to do."""

import json
import os
import sys
import threading
import time

SCALE = float(os.environ.get("CASE_SCALE", "1"))


class Dispatcher:
    def __init__(self):
        self.lock = threading.Lock()  # LOCK 2
        self.alarm = threading.Condition(self.lock)  # LOCK
        self.alarms, self.closed = [], False

    def raise_alarm(self, number):
        with self.alarm:
            self.alarms.append(number)
            self.alarm.notify()

    def close(self):
        with self.alarm:
            self.closed = True
            self.alarm.notify_all()

    def wait(self):
        with self.alarm:
            self.alarm.wait_for(lambda: self.alarms or self.closed)  # VICTIM
            return self.alarms.pop() if self.alarms else None


def guard(dispatcher, handled):
    while (number := dispatcher.wait()) is not None:
        time.sleep(0.001 * SCALE)
        handled.append(number)


def main():
    dispatcher, handled = Dispatcher(), []
    guards = [threading.Thread(target=guard, args=(dispatcher, handled)) for _ in range(6)]
    for thread in guards:
        thread.start()
    for number in range(14):
        time.sleep((0.05 + number % 4 * 0.02) * SCALE)
        dispatcher.raise_alarm(number)
    dispatcher.close()
    for thread in guards:
        thread.join()
    print(json.dumps({"handled": len(handled), "args": sys.argv[1:]}))


if __name__ == "__main__":
    main()
