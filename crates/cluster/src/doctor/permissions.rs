//! Whether memgate's account may do what its role says.

use crate::cluster_state::{Fetched, Installation, Permissions};
use crate::doctor::check::{Check, abbreviated};

/// Whether the account lacks one of them.
pub fn check(found: &Installation) -> Check {
    const ID: &str = "rights";
    if let Some(url) = found.own_url() {
        let message = format!("memgate is called at {url}: its rights cannot be seen from here");
        return Check::unknown(ID, "", message);
    }
    let subject = format!("ServiceAccount {}/memgate", found.namespace);
    match &found.permissions {
        Fetched::Found(Permissions { checked, denied }) if denied.is_empty() => {
            Check::ok(ID, subject, format!("it has all of the {checked} rights that its role names"))
        }
        Fetched::Found(Permissions { checked, denied }) => {
            let message = format!("it lacks {} of {checked} rights: {}", denied.len(), abbreviated(denied));
            let help = "memgate manifests --only rbac | kubectl apply -f -; -n says where memgate runs";
            Check::fail(ID, subject, message).help(help)
        }
        Fetched::Absent => Check::unknown(ID, subject, "the apiserver does not check permissions"),
        Fetched::Unknown(why) => Check::unknown(ID, subject, why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::CheckStatus;

    #[test]
    fn says_what_the_account_lacks() {
        let checks_of = |permissions| check(&Installation { permissions, ..Installation::default() });
        let denied = |denied: Vec<String>| checks_of(Fetched::Found(Permissions { checked: 9, denied }));
        assert_eq!(denied(Vec::new()).status, CheckStatus::Ok);
        let lacks = denied(vec!["list pods".to_owned()]);
        assert_eq!(
            (lacks.status, lacks.message.as_str()),
            (CheckStatus::Fail, "it lacks 1 of 9 rights: list pods")
        );
        assert_eq!(checks_of(Fetched::Unknown("you may not ask".to_owned())).status, CheckStatus::Unknown);
    }

    #[test]
    fn the_rights_of_a_memgate_outside_the_cluster_cannot_be_seen() {
        let entry = serde_json::json!({
            "name": "pods.memgate.dev", "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"url": "https://memgate.example:8443/mutate"},
        });
        let config = serde_json::json!({"metadata": {"name": "memgate"}, "webhooks": [entry]});
        let config = serde_json::from_value(config).expect("a configuration");
        let denied = Permissions { checked: 98, denied: vec!["list pods".to_owned(); 98] };
        let check = check(&Installation {
            name: "memgate".to_owned(),
            mutating: Fetched::Found(vec![config]),
            permissions: Fetched::Found(denied),
            ..Installation::default()
        });
        assert_eq!(check.status, CheckStatus::Unknown);
        assert!(check.message.contains("https://memgate.example:8443: its rights"), "{}", check.message);
    }
}
