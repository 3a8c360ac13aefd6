import sqlite3, threading, tempfile, os, time, sys
import contention_lab as cl
