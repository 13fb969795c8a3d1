//! What the database says was charged, to be held against a journal.

use sqlx::PgConnection;

use crate::ids::{MerchantId, PaymentId};

/// A payment as a gateway would know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::audit) struct Charged {
    pub(in crate::audit) merchant_id: MerchantId,
    pub(in crate::audit) payment_id: PaymentId,
    pub(in crate::audit) status: String,
    pub(in crate::audit) amount: i64,
    pub(in crate::audit) currency: String,
    pub(in crate::audit) gateway_key: String,
    pub(in crate::audit) gateway_reference: Option<String>,
}

/// Lists all payments: the journal of a sandbox is read into memory too.
pub(in crate::audit) async fn list_charged(
    connection: &mut PgConnection,
) -> sqlx::Result<Vec<Charged>> {
    let rows = sqlx::query!(
        r#"-- list_charged
            SELECT merchant_id, id, status, amount, currency, gateway_key, gateway_reference
            FROM payments"#,
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Charged {
            merchant_id: MerchantId::from_uuid(row.merchant_id),
            payment_id: PaymentId::from_uuid(row.id),
            status: row.status,
            amount: row.amount,
            currency: row.currency,
            gateway_key: row.gateway_key,
            gateway_reference: row.gateway_reference,
        })
        .collect())
}
