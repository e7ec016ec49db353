//! Publishing to a topic of SNS, as a program that is not ours does.

use anyhow::{Result, ensure};
use pumphouse_test_brokers::raw;

use super::sqs::Sent;

/// Publishes to the topic of that name.
pub(super) async fn publish(endpoint: &str, topic: &str, message: Sent) -> Result<()> {
    let mut parameters = vec![
        ("TopicArn".to_owned(), format!("arn:aws:sns:us-east-1:000000000000:{topic}")),
        ("Message".to_owned(), message.body),
    ];
    for (number, attribute) in (1..).zip(&message.attributes) {
        let entry = format!("MessageAttributes.entry.{number}");
        let field = attribute.field();
        parameters.push((format!("{entry}.Name"), attribute.name.clone()));
        parameters.push((format!("{entry}.Value.DataType"), attribute.data_type.to_owned()));
        parameters.push((format!("{entry}.Value.{field}"), attribute.value.clone()));
    }
    if topic.ends_with(".fifo") {
        parameters.push(("MessageGroupId".to_owned(), message.group));
        parameters.push(("MessageDeduplicationId".to_owned(), message.deduplication));
    }
    let parameters: Vec<_> =
        parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = raw::sns(endpoint, "Publish", &parameters).await?;
    ensure!(answer.status == 200, "Publish was answered {}: {}", answer.status, answer.body);
    Ok(())
}
