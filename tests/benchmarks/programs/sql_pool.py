"""Six threads on an SQLite file through SQLAlchemy, whose pool has three connections."""

import tempfile
import threading
import time
from pathlib import Path

from sqlalchemy import create_engine, event, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column
from sqlalchemy.pool import QueuePool

THREADS = 6
ORDERS = 300


class Base(DeclarativeBase):
    """What the tables share."""


class Order(Base):
    """One order."""

    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer: Mapped[int] = mapped_column(index=True)
    amount: Mapped[float]


def main() -> None:
    """Run it and print how long it took: wall and CPU seconds."""
    with tempfile.TemporaryDirectory() as folder:
        engine = create_engine(
            f"sqlite:///{Path(folder) / 'orders.db'}",
            poolclass=QueuePool,
            pool_size=3,
            max_overflow=0,
            connect_args={"timeout": 30, "check_same_thread": False},
        )

        @event.listens_for(engine, "connect")
        def quick(connection, _record):  # type: ignore[no-untyped-def]
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=OFF")

        Base.metadata.create_all(engine)

        def trade(customer: int) -> None:
            for number in range(ORDERS):
                with Session(engine) as session:
                    session.add(Order(customer=customer, amount=number * 1.5))
                    session.commit()
                with Session(engine) as session:
                    query = select(Order).where(Order.customer == customer).limit(20)
                    total = sum(order.amount for order in session.scalars(query))
                    count = session.scalar(select(func.count()).where(Order.customer == customer))
                    assert (count, total >= 0) == (number + 1, True)

        wall, cpu = time.perf_counter(), time.process_time()
        threads = [threading.Thread(target=trade, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(time.perf_counter() - wall, time.process_time() - cpu)
        engine.dispose()


if __name__ == "__main__":
    main()
