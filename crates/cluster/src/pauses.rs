//! Asks the apiserver's authorizer where memgate is paused, as the conditions of memgate's entries ask it: whatever the objects
//! are called that give the right.

use futures::{StreamExt as _, stream};
use kube::api::PostParams;
use kube::core::Request;
use serde_json::{Value, json};

use crate::cluster_state::{Fetched, Pause, text};
use crate::reader::{ClusterReader, fetch, path};
use memgate_install::pause::{ALL, GROUP, NEVER, PAUSED, RESOURCE, SKIP};
use memgate_model::family::Family;

/// The API group and version of questions to the authorizer, and their resource.
const AUTHORIZATION: &str = "authorization.k8s.io/v1";
const REVIEWS: &str = "subjectaccessreviews";

/// How many questions are asked at a time.
const MAX_CONCURRENT_REVIEWS: usize = 16;

/// What is paused of the installation in the namespace `home`: everything alone, else each namespace and each platform in it.
pub async fn pauses(
    reader: &ClusterReader,
    home: &str,
    namespaces: &Fetched<Vec<Value>>,
    families: &[&'static Family],
) -> Fetched<Vec<Pause>> {
    match pause(reader, home, ALL.to_owned()).await {
        Fetched::Absent => {}
        everything => return everything.map(|pause| vec![pause]),
    }
    let namespaces = match namespaces {
        Fetched::Found(namespaces) => namespaces.iter().map(|namespace| text(namespace, "/metadata/name")),
        Fetched::Absent => return Fetched::Absent,
        Fetched::Unknown(why) => return Fetched::Unknown(why.clone()),
    };
    let names = namespaces.flat_map(|namespace| {
        let of_family = move |family: &&Family| format!("{namespace}.{}", family.name);
        std::iter::once(namespace.to_owned()).chain(families.iter().map(of_family))
    });
    let mut asked =
        stream::iter(names.map(|name| pause(reader, home, name))).buffered(MAX_CONCURRENT_REVIEWS);
    let mut pauses = Vec::new();
    while let Some(answer) = asked.next().await {
        match answer {
            Fetched::Found(pause) => pauses.push(pause),
            Fetched::Absent => {}
            Fetched::Unknown(why) => return Fetched::Unknown(why),
        }
    }
    Fetched::Found(pauses)
}

/// The pause of a resource name; absent if there is none.
async fn pause(reader: &ClusterReader, home: &str, name: String) -> Fetched<Pause> {
    match allowed(reader, home, &name, SKIP).await {
        Fetched::Found(reason) => match allowed(reader, home, &name, NEVER).await {
            Fetched::Found(_) => Fetched::Absent,
            Fetched::Absent => Fetched::Found(Pause { name, reason }),
            Fetched::Unknown(why) => Fetched::Unknown(why),
        },
        Fetched::Absent => Fetched::Absent,
        Fetched::Unknown(why) => Fetched::Unknown(why),
    }
}

/// Why the account has a verb on a resource name; absent if it does not have it.
async fn allowed(reader: &ClusterReader, home: &str, name: &str, verb: &str) -> Fetched<String> {
    let review = json!({
        "apiVersion": AUTHORIZATION,
        "kind": "SubjectAccessReview",
        "spec": {
            "user": format!("system:serviceaccount:{home}:{PAUSED}"),
            // As CEL's authorizer.serviceAccount() asks.
            "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{home}")],
            "resourceAttributes": {
                "namespace": home, "group": GROUP, "resource": RESOURCE, "name": name, "verb": verb,
            },
        },
    });
    let answer = async {
        let request = Request::new(path(AUTHORIZATION, "", REVIEWS));
        let request = request.create(&PostParams::default(), review.to_string().into_bytes());
        reader.client.request::<Value>(request.map_err(kube::Error::BuildRequest)?).await
    };
    fetch("create", REVIEWS, answer).await.and_then(|answer| match answer.pointer("/status/allowed") {
        Some(Value::Bool(true)) => Fetched::Found(text(&answer, "/status/reason").to_owned()),
        _ => Fetched::Absent,
    })
}
