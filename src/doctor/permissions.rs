//! Whether memgate's account may do what its role says.

use crate::cluster::cluster_state::{Fetched, Installation, Permissions};
use crate::doctor::check::{Check, abbreviated};

/// Whether the account lacks one of them.
#[must_use]
pub fn check(found: &Installation) -> Check {
    const ID: &str = "rights";
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
        Fetched::NotFound => Check::unknown(ID, subject, "nobody was asked"),
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
}
