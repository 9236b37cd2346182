//! The arguments about policies: which count, at which point and time, and what is known of the cluster.

use std::collections::BTreeMap;

use anyhow::Context as _;
use jiff::Timestamp;

use crate::model::request::{Occasion, Point};
use crate::model::settings::PolicySettings;
use crate::policy;

/// Which policies count.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PolicyArgs {
    /// Policies and exemptions that count besides those of the inputs; can be repeated
    #[arg(long, value_name = "PATH", help_heading = "Policies")]
    pub policy: Vec<String>,

    /// Let no policy count, wherever it is
    #[arg(long, help_heading = "Policies")]
    pub no_policies: bool,
}

/// Where and when a decision is made.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct OccasionArgs {
    /// Which actions of policies count: those at admission, in ci or in an audit
    #[arg(long, value_name = "POINT", value_enum, help_heading = "Policies")]
    point: Option<PointArg>,

    /// The time for promotions and exemptions of policies, such as 2027-02-01T00:00:00Z [default: now]
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Policies")]
    at: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum PointArg {
    /// By the webhook
    Admission,
    /// Before anything is deployed
    Ci,
    /// About what is stored
    Audit,
}

impl OccasionArgs {
    /// Where and when, with `point` as the place where nobody says otherwise.
    #[must_use]
    pub fn occasion(&self, point: Point) -> Occasion<'static> {
        let point = match self.point {
            None => point,
            Some(PointArg::Admission) => Point::Admission,
            Some(PointArg::Ci) => Point::Ci,
            Some(PointArg::Audit) => Point::Audit,
        };
        Occasion::new(point, self.at.unwrap_or_else(Timestamp::now))
    }
}

/// Parses a point in time.
///
/// # Errors
/// When the text is none.
pub fn parse_time(text: &str) -> Result<Timestamp, String> {
    policy::timestamp(text).ok_or_else(|| "write it like 2027-02-01T00:00:00Z".to_owned())
}

/// What policies need to know of the cluster.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct PolicySettingsArgs {
    /// Labels of a Namespace that is not among the inputs, such as team-a:env=prod; can be repeated
    ///
    /// Several labels of one Namespace stand with commas, or in flags of their own.
    #[arg(long, value_name = "NS:K=V", value_parser = parse_labels, help_heading = "Policies")]
    namespace_labels: Vec<NamespaceLabels>,

    /// The domain of the cluster's Services [default: cluster.local]
    #[arg(long, value_name = "DOMAIN", help_heading = "Policies")]
    cluster_domain: Option<String>,

    /// A namespace in which no policy judges, besides kube-system and memgate's own; can be repeated
    #[arg(long, value_name = "NAME", help_heading = "Policies")]
    policy_exclude_namespace: Vec<String>,
}

/// Labels of a Namespace.
#[derive(Debug, Clone)]
pub struct NamespaceLabels {
    namespace: String,
    labels: Vec<(String, String)>,
}

fn parse_labels(text: &str) -> Result<NamespaceLabels, String> {
    const FORM: &str = "write it like NAMESPACE:KEY=VALUE";
    let (namespace, labels) = text.split_once(':').ok_or(FORM)?;
    let pair = |label: &str| {
        let (key, value) = label.split_once('=').filter(|(key, _)| !key.is_empty())?;
        Some((key.to_owned(), value.to_owned()))
    };
    let labels = labels.split(',').map(pair).collect::<Option<Vec<_>>>().ok_or(FORM)?;
    if namespace.is_empty() {
        return Err(FORM.to_owned());
    }
    Ok(NamespaceLabels { namespace: namespace.to_owned(), labels })
}

impl PolicySettingsArgs {
    /// The settings.
    ///
    /// # Errors
    /// When a domain is none.
    pub fn settings(&self) -> anyhow::Result<PolicySettings> {
        let mut settings = PolicySettings::default();
        if let Some(domain) = &self.cluster_domain {
            settings.cluster_domain = domain_of(domain).context("--cluster-domain")?;
        }
        settings.excluded_namespaces.clone_from(&self.policy_exclude_namespace);
        for NamespaceLabels { namespace, labels } in &self.namespace_labels {
            let of_namespace: &mut BTreeMap<_, _> =
                settings.namespace_labels.entry(namespace.clone()).or_default();
            of_namespace.extend(labels.iter().cloned());
        }
        Ok(settings)
    }
}

fn domain_of(text: &str) -> anyhow::Result<String> {
    let domain = text.trim_end_matches('.').to_lowercase();
    anyhow::ensure!(
        crate::model::name::is_dns_subdomain(&domain),
        "\"{text}\" is no domain; write it like cluster.local"
    );
    Ok(domain)
}

/// The flags that turn the defaults into these settings.
#[must_use]
pub fn flags(settings: &PolicySettings) -> Vec<String> {
    let default = PolicySettings::default();
    let domain = (settings.cluster_domain != default.cluster_domain)
        .then(|| format!("--cluster-domain={}", settings.cluster_domain));
    let excluded = settings.excluded_namespaces.iter();
    domain.into_iter().chain(excluded.map(|name| format!("--policy-exclude-namespace={name}"))).collect()
}
