//! Reads the cluster: a bounded number of objects, in pages, each request with an end. What may not
//! be read is unknown, and says which right it takes. Nothing is ever written, and no Secret read.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::Context as _;
use axum::http::Method;
use futures::StreamExt as _;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::Service;
use kube::api::{ApiResource, DynamicObject, ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::time::timeout;

use crate::cli::apiserver::{ask, said};
use crate::cli::doctor::access;
use crate::cli::doctor::evidence::{Installation, Listed, Seen, Served};
use crate::cli::doctor::expected::Expected;
use crate::deploy::metadata::NAME;
use crate::family;
use crate::model::kind::Kind;

/// How many objects one request brings.
const PAGE: u32 = 500;

/// The longest that one request may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// How many questions about rights are asked at a time.
const AT_ONCE: usize = 8;

/// The way to the cluster.
pub(super) struct Reader {
    pub(super) client: Client,
    /// The most objects of one sort.
    pub(super) most: usize,
}

/// What one request came to.
enum Failure {
    NotThere,
    Other(String),
}

/// Finishes a request, or says why not: `verb` and `what` are the right that it takes.
async fn answer<T>(
    verb: &str,
    what: &str,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, Failure> {
    match timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Err(Failure::NotThere),
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            Err(Failure::Other(format!("you may not {verb} {what}: it takes that right")))
        }
        Ok(Err(error)) => Err(Failure::Other(format!("failed to {verb} {what}: {}", said(&error)))),
        Err(_) => Err(Failure::Other(format!("failed to {verb} {what}: no answer in {PATIENCE:?}"))),
    }
}

impl Reader {
    /// One object by name.
    async fn get<K>(&self, api: Api<K>, what: &str, name: &str) -> Seen<K>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        seen(answer("get", what, api.get(name)).await)
    }

    /// All objects, as far as they are not too many.
    pub(super) async fn list<K>(&self, api: Api<K>, what: &str, params: ListParams) -> Seen<Listed<K>>
    where
        K: Clone + DeserializeOwned + Debug,
    {
        let mut listed = Listed::default();
        let mut params = params.limit(PAGE);
        loop {
            let page = match answer("list", what, api.list(&params)).await {
                Ok(page) => page,
                Err(failure) => return seen(Err(failure)),
            };
            let next = page.metadata.continue_.filter(|token| !token.is_empty());
            listed.items.extend(page.items);
            match next {
                Some(_) if listed.items.len() >= self.most => {
                    listed.cut = true;
                    return Seen::Found(listed);
                }
                Some(token) => params = params.continue_token(&token),
                None => return Seen::Found(listed),
            }
        }
    }

    /// One object of a kind that a family names, as JSON.
    pub(super) async fn get_kind(&self, kind: &Kind, namespace: &str, name: &str) -> Seen<Value> {
        let api = self.api(kind, namespace);
        match self.get(api, kind.plural, name).await {
            Seen::Found(object) => Seen::Found(json(kind, &object)),
            Seen::Absent => Seen::Absent,
            Seen::Unknown(why) => Seen::Unknown(why),
        }
    }

    /// All objects of a kind that a family names, as JSON.
    pub(super) async fn list_kind(&self, kind: &Kind, params: ListParams) -> Seen<Listed<Value>> {
        match self.list(self.api(kind, ""), kind.plural, params).await {
            Seen::Found(listed) => {
                let items = listed.items.iter().map(|object| json(kind, object)).collect();
                Seen::Found(Listed { items, cut: listed.cut })
            }
            Seen::Absent => Seen::Absent,
            Seen::Unknown(why) => Seen::Unknown(why),
        }
    }

    fn api(&self, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
        let resource = ApiResource {
            group: kind.group.to_owned(),
            version: kind.version.to_owned(),
            api_version: kind.api_version(),
            kind: kind.kind.to_owned(),
            plural: kind.plural.to_owned(),
        };
        if namespace.is_empty() {
            Api::all_with(self.client.clone(), &resource)
        } else {
            Api::namespaced_with(self.client.clone(), namespace, &resource)
        }
    }

    fn all<K: Resource<DynamicType = ()>>(&self) -> Api<K> {
        Api::all(self.client.clone())
    }

    fn home<K>(&self, namespace: &str) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>,
    {
        Api::namespaced(self.client.clone(), namespace)
    }
}

fn seen<T>(result: Result<T, Failure>) -> Seen<T> {
    match result {
        Ok(found) => Seen::Found(found),
        Err(Failure::NotThere) => Seen::Absent,
        Err(Failure::Other(why)) => Seen::Unknown(why),
    }
}

/// Items of a list do not say of which kind they are.
fn json(kind: &Kind, object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), kind.api_version().into());
        fields.insert("kind".to_owned(), kind.kind.into());
    }
    value
}

/// What memgate's installation consists of, and what stands beside it. Rights are another question.
///
/// # Errors
/// When the apiserver does not answer at all.
pub(super) async fn installation(reader: &Reader, home: &str, name: &str) -> anyhow::Result<Installation> {
    let version = timeout(PATIENCE, ask(&reader.client, Method::GET, "/version", None)).await;
    let version = version.context("the apiserver does not answer")?;
    let version =
        version.map_err(|error| anyhow::anyhow!("the apiserver does not answer: {}", said(&error)))?;
    let slices = ListParams::default().labels(&format!("kubernetes.io/service-name={NAME}"));
    let pods = ListParams::default().labels(&format!("app.kubernetes.io/name={NAME}"));
    let every = ListParams::default;
    Ok(Installation {
        home: home.to_owned(),
        name: name.to_owned(),
        time: version.time,
        version: version_of(&version.body),
        served: served(reader).await,
        mutating: reader.list(reader.all(), "mutatingwebhookconfigurations", every()).await,
        validating: reader.list(reader.all(), "validatingwebhookconfigurations", every()).await,
        service: reader.get(reader.home::<Service>(home), "services", NAME).await,
        endpoints: reader.list(reader.home(home), "endpointslices", slices).await,
        deployment: reader.get(reader.home(home), "deployments", NAME).await,
        budgets: reader.list(reader.home(home), "poddisruptionbudgets", every()).await,
        replicas: reader.list(reader.home(home), "pods", pods).await,
        namespaces: reader.list(reader.all(), "namespaces", every()).await,
        denied: Seen::Absent,
    })
}

fn version_of(body: &Value) -> Seen<(u32, u32)> {
    let number = |field: &str| -> Option<u32> {
        let text = body.get(field)?.as_str()?;
        text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()
    };
    match (number("major"), number("minor")) {
        (Some(major), Some(minor)) => Seen::Found((major, minor)),
        _ => Seen::Absent,
    }
}

/// What the apiserver serves of the groups that families name.
async fn served(reader: &Reader) -> Seen<Served> {
    let groups = answer("get", "/apis", reader.client.list_api_groups()).await;
    let groups = match groups {
        Ok(groups) => groups.groups,
        Err(failure) => return seen(Err(failure)),
    };
    let named =
        |group: &str| family::state_kinds(&family::ALL).chain(judged()).any(|kind| kind.group == group);
    let mut served = Served::new();
    for group in groups.into_iter().filter(|group| named(&group.name)) {
        for version in group.versions {
            let path = &version.group_version;
            let resources = answer("get", path, reader.client.list_api_group_resources(path)).await;
            let Ok(resources) = resources else { continue };
            let plurals = resources.resources.into_iter().map(|resource| resource.name);
            served.insert((group.name.clone(), version.version), plurals.collect());
        }
    }
    Seen::Found(served)
}

fn judged() -> impl Iterator<Item = &'static Kind> {
    family::ALL.into_iter().flat_map(|family| family.validated).copied()
}

/// How many rights memgate's account should have, and those that it has not.
pub(super) async fn denied(
    reader: &Reader,
    found: &Installation,
    wanted: &Expected,
) -> Seen<(usize, Vec<String>)> {
    let spec = found.deployment.found().and_then(|deployment| deployment.spec.clone()?.template.spec);
    let account = spec.and_then(|spec| spec.service_account_name).unwrap_or_else(|| NAME.to_owned());
    let home = found.home.as_str();
    let mut questions = access::questions(&wanted.everywhere, None, home, &account);
    questions.extend(access::questions(&wanted.at_home, Some(home), home, &account));
    let count = questions.len();
    let api: Api<SubjectAccessReview> = reader.all();
    let answers = futures::stream::iter(questions).map(|question| {
        let api = api.clone();
        async move {
            let params = PostParams::default();
            let asked = answer("create", "subjectaccessreviews", api.create(&params, &question));
            let allowed = asked.await?.status.is_some_and(|status| status.allowed);
            Ok((access::shown(&question), allowed))
        }
    });
    let answers: Vec<Result<(String, bool), Failure>> = answers.buffered(AT_ONCE).collect().await;
    let answers: Result<Vec<_>, Failure> = answers.into_iter().collect();
    let denied = |answers: Vec<(String, bool)>| {
        answers.into_iter().filter_map(|(right, allowed)| (!allowed).then_some(right)).collect()
    };
    seen(answers.map(|answers| (count, denied(answers))))
}
