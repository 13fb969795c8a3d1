//! Waits until PostgreSQL answers.
//!
//! A server is ready when it has answered a query over TCP, in a session of its own, twice: one
//! that is about to restart or to recover may answer once.

use std::time::Duration;

use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tokio::time::{Instant, sleep, timeout};

use super::{error::EmbeddedError, server::Server};

/// Recovery after a crash comes first, so this is not the time of a usual start.
const READY_WITHIN: Duration = Duration::from_mins(1);
const ASK_EVERY: Duration = Duration::from_millis(20);
const BETWEEN_ANSWERS: Duration = Duration::from_millis(200);
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn wait(server: &mut Server) -> Result<(), EmbeddedError> {
    let began_at = Instant::now();
    let mut answered_before = false;
    loop {
        if server.has_ended()? {
            return Err(EmbeddedError::Exited {
                log_tail: server.log_tail(),
            });
        }
        let answered = answers(server).await;
        if answered && answered_before {
            return Ok(());
        }
        if began_at.elapsed() > READY_WITHIN {
            return Err(EmbeddedError::NotReady {
                within: READY_WITHIN,
                log_tail: server.log_tail(),
            });
        }
        answered_before = answered;
        sleep(if answered { BETWEEN_ANSWERS } else { ASK_EVERY }).await;
    }
}

/// Only our own server can answer: a stranger on the port does not know the password, and to it
/// we only prove that we do (SCRAM).
async fn answers(server: &Server) -> bool {
    let asked = async {
        let mut session = server.connect_options("postgres").connect().await?;
        session.execute("SELECT 1").await?;
        session.close().await
    };
    matches!(timeout(ANSWER_WITHIN, asked).await, Ok(Ok(())))
}
