//! Every typed rule over every family has an export or a reason.
