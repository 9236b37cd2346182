//! The flags about policies: which apply, at which point and time, and what they need to know of the cluster.

use jiff::Timestamp;

use crate::cli::choice::choice;

use memgate_model::request::{Occasion, Point};
use memgate_model::settings::PolicySettings;
use memgate_primitives::name::is_dns_subdomain;

/// Which policies apply, and for which point and time.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Policies")]
pub struct PolicyArgs {
    /// More policies and exemptions; repeatable
    ///
    /// They apply besides those among the inputs.
    #[arg(long, value_name = "PATH")]
    pub policy: Vec<String>,

    /// Apply no policy
    #[arg(long)]
    pub no_policies: bool,

    /// Labels of a Namespace, as in a:env=prod
    ///
    /// They win over the labels in its manifest, and over namespaces in .memgate.yaml; repeatable. Commas separate
    /// several labels of one Namespace.
    #[arg(long, value_name = "NS:K=V", value_parser = parse_labels, hide_short_help = true)]
    namespace_labels: Vec<NamespaceLabels>,

    #[command(flatten)]
    cluster: ClusterPolicyArgs,

    /// Use the actions of this point
    ///
    /// Each rule has an action for admission (the webhook), ci (before anything is deployed) and audit (stored
    /// objects).
    #[arg(long, value_name = "admission|ci|audit", hide_possible_values = true)]
    #[arg(value_parser = choice(Point::ALL.map(|point| (point.name(), point))))]
    point: Option<Point>,

    /// Time of the decision [default: now]
    ///
    /// Promotions and exemptions of policies depend on it. Write it like 2027-02-01T00:00:00Z.
    #[arg(long, value_name = "TIME", value_parser = parse_time, hide_short_help = true)]
    at: Option<Timestamp>,
}

/// What policies need to know of the cluster.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Policies")]
pub struct ClusterPolicyArgs {
    /// Domain of the cluster's Services [default: cluster.local]
    #[arg(long, value_name = "DOMAIN", value_parser = parse_domain, hide_short_help = true)]
    cluster_domain: Option<String>,

    /// Namespace in which no policy applies; repeatable
    ///
    /// No policy applies in kube-system and in memgate's own namespace either.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    policy_exclude_namespace: Vec<String>,
}

impl PolicyArgs {
    /// The point and the time of a decision; `default` is the point without `--point`.
    pub fn occasion(&self, default: Point) -> Occasion<'static> {
        Occasion::new(self.point.unwrap_or(default), self.at.unwrap_or_else(Timestamp::now))
    }

    /// Sets what policies need to know of the cluster.
    pub fn apply(&self, settings: &mut PolicySettings) {
        self.cluster.apply(settings);
        for (namespace, labels) in &self.namespace_labels {
            settings.namespace_labels.entry(namespace.clone()).or_default().extend(labels.iter().cloned());
        }
    }
}

impl ClusterPolicyArgs {
    /// Replaces the settings that are given.
    pub fn apply(&self, settings: &mut PolicySettings) {
        if let Some(domain) = &self.cluster_domain {
            settings.cluster_domain.clone_from(domain);
        }
        settings.excluded_namespaces.extend(self.policy_exclude_namespace.iter().cloned());
    }
}

/// Parses a point in time.
///
/// # Errors
/// When the text is not a time.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    memgate_policy::timestamp(text).ok_or_else(|| "write it like 2027-02-01T00:00:00Z".to_owned())
}

fn parse_domain(text: &str) -> Result<String, String> {
    let domain = text.trim_end_matches('.').to_lowercase();
    if is_dns_subdomain(&domain) { Ok(domain) } else { Err("write it like cluster.local".to_owned()) }
}

/// The name of a Namespace, and labels of it.
type NamespaceLabels = (String, Vec<(String, String)>);

fn parse_labels(text: &str) -> Result<NamespaceLabels, String> {
    let pair = |label: &str| {
        let (key, value) = label.split_once('=').filter(|(key, _)| !key.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    };
    let parsed = text.split_once(':').filter(|(namespace, _)| !namespace.is_empty());
    let parsed = parsed.and_then(|(namespace, labels)| {
        Some((namespace.to_owned(), labels.split(',').map(pair).collect::<Option<_>>()?))
    });
    parsed.ok_or_else(|| "write it like NAMESPACE:KEY=VALUE".to_owned())
}
