//! Where memgate is paused, and reviews nothing. The apiserver's authorizer is asked, as the conditions of memgate's entries ask
//! it: whatever the objects are called that give the right.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use kube::api::PostParams;
use kube::core::Request;
use serde_json::Value;

use crate::check::Check;
use crate::cluster_state::{Fetched, text};
use crate::reader::{ClusterReader, fetch, path};
use memgate_install::pause::{ALL, GROUP, NEVER, PAUSED, RESOURCE, SKIP};
use memgate_install::rights::{AUTHORIZATION, Right};
use memgate_model::family::Family;

const ID: &str = "paused";

/// The resource of questions to the authorizer.
const REVIEWS: &str = "subjectaccessreviews";

/// How many questions are asked at a time.
pub(super) const MAX_CONCURRENT_REVIEWS: usize = 16;

/// A check for each pause of the installation in the namespace `home`, or one that nothing is paused.
pub(super) async fn checks(
    reader: &ClusterReader,
    home: &str,
    namespaces: &Fetched<Vec<Value>>,
    families: &[&'static Family],
) -> Vec<Check> {
    match pauses(reader, home, namespaces, families).await {
        Ok(pauses) if pauses.is_empty() => vec![Check::ok(ID, "", "nothing is paused")],
        Ok(pauses) => pauses.iter().map(|(name, reason)| check(home, name, reason)).collect(),
        Err(why) => vec![Check::unknown(ID, "", why)],
    }
}

/// What is paused, everything alone, else each namespace and each platform in it, and why the account may.
async fn pauses(
    reader: &ClusterReader,
    home: &str,
    namespaces: &Fetched<Vec<Value>>,
    families: &[&'static Family],
) -> Result<Vec<(String, String)>, String> {
    if let Some(everything) = pause(reader, home, ALL.to_owned()).await? {
        return Ok(vec![everything]);
    }
    if let Fetched::Unknown(why) = namespaces {
        return Err(why.clone());
    }
    let namespaces = namespaces.items().iter().map(|namespace| text(namespace, "/metadata/name"));
    let names = namespaces.flat_map(|namespace| {
        let of_family = move |family: &&Family| format!("{namespace}.{}", family.name);
        std::iter::once(namespace.to_owned()).chain(families.iter().map(of_family))
    });
    let asked = stream::iter(names.map(|name| pause(reader, home, name))).buffered(MAX_CONCURRENT_REVIEWS);
    let answers: Vec<_> = asked.try_collect().await?;
    Ok(answers.into_iter().flatten().collect())
}

/// A resource name that is paused, and why.
async fn pause(reader: &ClusterReader, home: &str, name: String) -> Result<Option<(String, String)>, String> {
    let review = |verb: &str| {
        let [verb, group, resource, namespace] = [verb, GROUP, RESOURCE, home].map(str::to_owned);
        Right { verb, group, resource, name: name.clone(), namespace }.review(Some((home, PAUSED)))
    };
    let Some(reason) = allowed(reader, &review(SKIP)).await? else { return Ok(None) };
    let is_never = allowed(reader, &review(NEVER)).await?.is_some();
    Ok((!is_never).then_some((name, reason)))
}

/// Why an account has a right, if it has it.
pub(super) async fn allowed(reader: &ClusterReader, review: &Value) -> Result<Option<String>, String> {
    let answer = async {
        let request = Request::new(path(AUTHORIZATION, "", REVIEWS));
        let request = request.create(&PostParams::default(), review.to_string().into_bytes());
        reader.client.request::<Value>(request.map_err(kube::Error::BuildRequest)?).await
    };
    match fetch("create", REVIEWS, answer).await {
        Fetched::Found(answer) if answer.pointer("/status/allowed") == Some(&Value::Bool(true)) => {
            Ok(Some(text(&answer, "/status/reason").to_owned()))
        }
        Fetched::Found(_) | Fetched::Absent => Ok(None),
        Fetched::Unknown(why) => Err(why),
    }
}

fn check(home: &str, name: &str, reason: &str) -> Check {
    let (subject, of) = match name.split_once('.') {
        _ if name == ALL => (String::new(), " everywhere".to_owned()),
        Some((namespace, family)) => (format!("Namespace {namespace}"), format!(" for {family}")),
        None => (format!("Namespace {name}"), String::new()),
    };
    let help = end(home, reason)
        .unwrap_or_else(|| format!("take the right from the account; the apiserver says: {reason}"));
    Check::fail(ID, subject, format!("memgate is paused{of}: nothing is reviewed")).help(help)
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
            let check = check("gate", name, reason);
            assert_eq!(
                (&*check.subject, &*check.message, check.help.as_deref()),
                (subject, message, Some(help))
            );
        }
    }
}
