//! What is paused: there memgate reviews nothing.

use crate::check::{Check, CheckStatus};
use crate::cluster_state::{Fetched, Installation, Pause};
use memgate_install::pause::ALL;

const ID: &str = "paused";

/// A check for each pause, or one that nothing is paused.
pub fn checks(found: &Installation) -> Vec<Check> {
    match &found.pauses {
        Fetched::Found(pauses) if !pauses.is_empty() => {
            pauses.iter().map(|pause| check(&found.namespace, pause)).collect()
        }
        Fetched::Found(_) | Fetched::Absent => vec![Check::ok(ID, "", "nothing is paused")],
        Fetched::Unknown(why) => vec![Check::new(ID, CheckStatus::Unknown, "", why.clone())],
    }
}

fn check(home: &str, pause: &Pause) -> Check {
    let (subject, of) = match pause.name.split_once('.') {
        _ if pause.name == ALL => (String::new(), " everywhere".to_owned()),
        Some((namespace, family)) => (format!("Namespace {namespace}"), format!(" for {family}")),
        None => (format!("Namespace {}", pause.name), String::new()),
    };
    let help = end(home, &pause.reason)
        .unwrap_or_else(|| format!("take the right from the account; the apiserver says: {}", pause.reason));
    Check::warn(ID, subject, format!("memgate is paused{of}: nothing is reviewed")).help(help)
}

/// The command that deletes the binding which the authorizer of RBAC names as its reason. Source: `String` of bindings in
/// k8s.io/kubernetes/pkg/registry/rbac/validation.
fn end(home: &str, reason: &str) -> Option<String> {
    let (kind, rest) = reason.strip_prefix("RBAC: allowed by ")?.split_once(" \"")?;
    let name = rest.split_once('"')?.0.split('/').next()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':' | '_');
    let place = if kind == "RoleBinding" { format!("-n {home} ") } else { String::new() };
    name.chars().all(is_plain).then(|| format!("kubectl {place}delete {} {name}", kind.to_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warns_of_each_pause_with_the_command_that_ends_it() {
        let one = |name: &str, reason: &str| {
            let pause = Pause { name: name.to_owned(), reason: reason.to_owned() };
            check("gate", &pause)
        };
        let role = "RBAC: allowed by RoleBinding \"off/gate\" of Role \"off\" to ServiceAccount \"memgate-paused/gate\"";
        let wide = "RBAC: allowed by ClusterRoleBinding \"a:b\" of ClusterRole \"any\" to Group \"system:serviceaccounts\"";
        let odd = "RBAC: allowed by RoleBinding \"a; b/gate\" of Role \"off\" to User \"any\"";
        for (name, reason, subject, message, help) in [
            (
                "*",
                wide,
                "",
                "memgate is paused everywhere: nothing is reviewed",
                "kubectl delete clusterrolebinding a:b",
            ),
            (
                "a",
                role,
                "Namespace a",
                "memgate is paused: nothing is reviewed",
                "kubectl -n gate delete rolebinding off",
            ),
            (
                "a.ark",
                odd,
                "Namespace a",
                "memgate is paused for ark: nothing is reviewed",
                &format!("take the right from the account; the apiserver says: {odd}"),
            ),
        ] {
            let check = one(name, reason);
            assert_eq!(
                (&*check.subject, &*check.message, check.help.as_deref()),
                (subject, message, Some(help))
            );
        }
        let none = Installation { pauses: Fetched::Found(Vec::new()), ..Installation::default() };
        assert_eq!(checks(&none)[0].status, CheckStatus::Ok);
    }
}
