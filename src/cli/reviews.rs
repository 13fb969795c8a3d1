//! `oncepay reviews`: payments for which a person must look.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;

use super::{CliError, output};
use crate::{
    clock::SystemClock,
    config::{RawDatabase, RawIdempotency, RawLog},
    db::{Database, migrations},
    http::views,
    ids::{MerchantId, PaymentId},
    payments::{
        review::{self, Decision, Desk},
        state::PaymentStatus,
        store::ReviewRow,
        text::TextRule,
    },
};

const NAME: TextRule = TextRule::line(100);
const REASON: TextRule = TextRule::line(1000);
const REFERENCE: TextRule = TextRule::line(255);

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Lists the payments in review with their evidence, the oldest thousand
    List(ReviewArguments),
    /// Settles a payment in review as you have found out; its key then replays the answer
    Resolve(Box<ResolveArguments>),
}

#[derive(Args, Debug)]
pub(super) struct ReviewArguments {
    #[command(flatten)]
    database: RawDatabase,
    #[command(flatten)]
    log: RawLog,
}

#[derive(Args, Debug)]
pub(super) struct ResolveArguments {
    /// The payment, as `reviews list` names it
    payment: PaymentId,
    /// What became of it at the gateway
    #[arg(long, value_enum)]
    to: To,
    /// Who decides; the merchant can read it in the event
    #[arg(long, value_name = "NAME", value_parser = |text: &str| read(NAME, text))]
    by: String,
    /// Why; the merchant can read it in the event
    #[arg(long, value_name = "TEXT", value_parser = |text: &str| read(REASON, text))]
    reason: String,
    /// What the gateway calls the payment; needed where it was executed
    #[arg(long, value_name = "REF", value_parser = |text: &str| read(REFERENCE, text))]
    gateway_reference: Option<String>,
    #[command(flatten)]
    database: RawDatabase,
    #[command(flatten)]
    idempotency: RawIdempotency,
    #[command(flatten)]
    log: RawLog,
}

/// Where a review can end.
#[derive(Clone, Copy, Debug, ValueEnum)]
#[value(rename_all = "snake_case")]
enum To {
    Succeeded,
    Failed,
    RequiresCapture,
    Canceled,
}

impl From<To> for PaymentStatus {
    fn from(to: To) -> Self {
        match to {
            To::Succeeded => Self::Succeeded,
            To::Failed => Self::Failed,
            To::RequiresCapture => Self::RequiresCapture,
            To::Canceled => Self::Canceled,
        }
    }
}

/// A line of `reviews list`. It names the key in the clear: it is what the merchant calls the
/// payment when operators talk to them, and a result for a person, not a log (D11).
#[derive(Debug, Serialize)]
struct ReviewView {
    payment_id: PaymentId,
    merchant_id: MerchantId,
    idempotency_key: String,
    amount: i64,
    currency: String,
    gateway: String,
    gateway_key: String,
    gateway_reference: Option<String>,
    since: Option<DateTime<Utc>>,
    evidence: EvidenceView,
}

#[derive(Debug, Serialize)]
struct EvidenceView {
    reason: Option<String>,
    operation: Option<String>,
    attempts: Option<i32>,
    first_sent_at: Option<DateTime<Utc>>,
    unknown_since: Option<DateTime<Utc>>,
}

pub(super) async fn run(command: Command) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list(arguments).await,
        Command::Resolve(arguments) => resolve(*arguments).await,
    }
}

async fn list(arguments: ReviewArguments) -> Result<(), CliError> {
    super::log(&arguments.log.validate()?)?;
    let database = connect(arguments.database).await?;
    review::list(&database)
        .await
        .map_err(|error| CliError::step("the reviews cannot be listed", error))?
        .into_iter()
        .try_for_each(|row| output::object(&ReviewView::from(row)))
}

async fn resolve(arguments: ResolveArguments) -> Result<(), CliError> {
    super::log(&arguments.log.validate()?)?;
    let idempotency = arguments.idempotency.validate()?;
    let desk = Desk {
        database: connect(arguments.database).await?,
        clock: Arc::new(SystemClock),
        presenter: views::PRESENTER,
        ttl_completed: idempotency.ttl_completed,
        ttl_failed: idempotency.ttl_failed,
        lease_ttl: idempotency.lease_ttl,
    };
    let decision = Decision {
        to: arguments.to.into(),
        by: arguments.by,
        reason: arguments.reason,
        gateway_reference: arguments.gateway_reference,
    };
    let payment = review::resolve(&desk, arguments.payment, &decision)
        .await
        .map_err(|error| CliError::step("the payment is not resolved", error))?;
    output::object(&views::PaymentView::from(&payment))
}

async fn connect(database: RawDatabase) -> Result<Database, CliError> {
    let settings = database.validate()?;
    let options = settings.connect_options().map_err(CliError::Database)?;
    let database = Database::new(options, 1);
    let mut connection = database
        .pool()
        .acquire()
        .await
        .map_err(CliError::Database)?;
    migrations::require_current(&mut connection).await?;
    drop(connection);
    Ok(database)
}

/// The rules of a client's text: no control characters, no card numbers, not without end.
fn read(rule: TextRule, text: &str) -> Result<String, String> {
    rule.check(text).map_err(|fault| fault.to_string())?;
    Ok(text.to_owned())
}

impl From<ReviewRow> for ReviewView {
    fn from(row: ReviewRow) -> Self {
        let record = row.record.as_ref();
        Self {
            payment_id: PaymentId::from_uuid(row.payment_id),
            merchant_id: MerchantId::from_uuid(row.merchant_id),
            evidence: EvidenceView {
                reason: row.reason,
                operation: record.map(|record| record.operation.clone()),
                attempts: record.map(|record| record.attempts),
                first_sent_at: record.and_then(|record| record.first_sent_at),
                unknown_since: record.and_then(|record| record.unknown_since),
            },
            idempotency_key: row.idempotency_key,
            amount: row.amount,
            currency: row.currency,
            gateway: row.gateway,
            gateway_key: row.gateway_key,
            gateway_reference: row.gateway_reference,
            since: row.since,
        }
    }
}
