-- The table that is read. What matters is `updated_at`: it is set by every change, when the change is made, and by nobody else.
CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer text NOT NULL,
    cents bigint NOT NULL,
    status text NOT NULL DEFAULT 'placed',
    updated_at timestamptz NOT NULL
);

-- The order in which it is read.
CREATE INDEX orders_by_change ON orders (updated_at, id);

-- First the transaction gets its number, then the time is read: where all transactions that had a number at some time have ended, there
-- will be no further change of before that time. `now()` would not do, it is the time at which the transaction began.
CREATE FUNCTION orders_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_current_xact_id();
    NEW.updated_at := clock_timestamp();
    RETURN NEW;
END $$;

CREATE TRIGGER orders_changed BEFORE INSERT OR UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION orders_changed();
