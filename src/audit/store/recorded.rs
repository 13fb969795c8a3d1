//! What the database says that a gateway must have.

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::ids::{MerchantId, PaymentId};

/// A payment, as far as a gateway can confirm it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::audit) struct Recorded {
    pub(in crate::audit) merchant_id: MerchantId,
    pub(in crate::audit) payment_id: PaymentId,
    pub(in crate::audit) status: String,
    pub(in crate::audit) amount: i64,
    pub(in crate::audit) captured: i64,
    /// Given back, or about to be.
    pub(in crate::audit) refunded: i64,
    pub(in crate::audit) currency: String,
    pub(in crate::audit) gateway_key: String,
    pub(in crate::audit) gateway_reference: Option<String>,
    /// Whether it was made in the time that the gateway's list is about, so that it must be in it.
    pub(in crate::audit) expected: bool,
}

/// Which payments of a gateway are compared: those that it names, and those since then.
#[derive(Debug)]
pub(in crate::audit) struct Sought<'a> {
    pub(in crate::audit) gateway: &'a str,
    pub(in crate::audit) gateway_keys: &'a [String],
    pub(in crate::audit) references: &'a [String],
    pub(in crate::audit) since: DateTime<Utc>,
}

/// Lists what is compared, in one pass over the payments, as most checks here are: an index for an
/// audit would cost every payment a write.
pub(in crate::audit) async fn list_recorded(
    connection: &mut PgConnection,
    sought: Sought<'_>,
) -> sqlx::Result<Vec<Recorded>> {
    let rows = sqlx::query!(
        r#"-- list_recorded
            SELECT
                merchant_id,
                id,
                status,
                amount,
                amount_captured,
                amount_refunded + refund_pending AS "refunded!",
                currency,
                gateway_key,
                gateway_reference,
                created_at >= $4 AS "expected!"
            FROM payments
            WHERE gateway = $1
              AND (
                  created_at >= $4
                  OR gateway_key = ANY($2)
                  OR gateway_reference = ANY($3)
              )"#,
        sought.gateway,
        sought.gateway_keys,
        sought.references,
        sought.since,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Recorded {
            merchant_id: MerchantId::from_uuid(row.merchant_id),
            payment_id: PaymentId::from_uuid(row.id),
            status: row.status,
            amount: row.amount,
            captured: row.amount_captured,
            refunded: row.refunded,
            currency: row.currency,
            gateway_key: row.gateway_key,
            gateway_reference: row.gateway_reference,
            expected: row.expected,
        })
        .collect())
}
