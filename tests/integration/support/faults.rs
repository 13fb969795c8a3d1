//! Faults of the database, made by triggers: the service under test meets them as real ones.

use super::database::TestDatabase;

/// What a fault does with the write that meets it.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// Refuses it with this SQLSTATE.
    Refuse(&'static str),
    /// Drops the row: the statement goes on as if somebody else's row had been in the way.
    Swallow,
}

/// Meets the first `times` rows of `writes` (such as `INSERT ON used_keys`) with `fault`.
///
/// The count is a sequence, which no rollback resets.
pub async fn meet(database: &TestDatabase, writes: &str, fault: Fault, times: u32) {
    let deed = match fault {
        Fault::Refuse(code) => format!("RAISE EXCEPTION 'injected' USING ERRCODE = '{code}'"),
        Fault::Swallow => "RETURN NULL".to_owned(),
    };
    let statement = format!(
        "CREATE SEQUENCE injected_faults;
         CREATE FUNCTION inject_fault() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             IF nextval('injected_faults') <= {times} THEN
                 {deed};
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER injected_fault BEFORE {writes}
         FOR EACH ROW EXECUTE FUNCTION inject_fault();"
    );
    database.execute(&statement).await;
}

/// How many rows have met the trigger, whether with a fault or without.
pub async fn met(database: &TestDatabase) -> i64 {
    let query = "SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM injected_faults";
    database.count(query).await
}

/// Makes each claim take that long, an SQL interval, on the server.
pub async fn slow_claims(database: &TestDatabase, by: &str) {
    let statement = format!(
        "CREATE FUNCTION delay_claim() RETURNS trigger LANGUAGE plpgsql AS $$
         BEGIN
             PERFORM pg_sleep_for('{by}');
             RETURN NEW;
         END $$;
         CREATE TRIGGER delayed_claim BEFORE INSERT ON used_keys
         FOR EACH ROW EXECUTE FUNCTION delay_claim();"
    );
    database.execute(&statement).await;
}
