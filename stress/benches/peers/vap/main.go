// Command vap judges files by ValidatingAdmissionPolicies with the libraries of a kube-apiserver, for the comparison of
// tools/bench-policies.sh: vap POLICIES FOLDER. It reads each file of the folder, a Namespace and objects in it, and
// writes a JSON list of the policies that each object breaks. An expression that fails counts as broken, as it does in a
// cluster with the failure policy Fail.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/apiserver/pkg/admission"
	plugin "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

type broken struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Policy    string `json:"policy"`
}

type policy struct {
	v1.ValidatingAdmissionPolicy
	validator validating.Validator
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// documents are those of a YAML file, each as its kind and its JSON.
func documents(path string, take func(kind string, text []byte)) {
	file := must(os.Open(path))
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 1<<16)
	for {
		var raw json.RawMessage
		if decoder.Decode(&raw) != nil {
			return
		}
		var kind struct{ Kind string }
		if json.Unmarshal(raw, &kind) == nil && kind.Kind != "" {
			take(kind.Kind, raw)
		}
	}
}

func compile(p v1.ValidatingAdmissionPolicy) validating.Validator {
	compiler := must(plugin.NewCompositedCompiler(environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())))
	options := plugin.OptionalVariableDeclarations{}
	var variables []plugin.NamedExpressionAccessor
	for _, variable := range p.Spec.Variables {
		variables = append(variables, &validating.Variable{Name: variable.Name, Expression: variable.Expression})
	}
	compiler.CompileAndStoreVariables(variables, options, environment.StoredExpressions)
	var validations []plugin.ExpressionAccessor
	for _, it := range p.Spec.Validations {
		validations = append(validations, &validating.ValidationCondition{Expression: it.Expression, Message: it.Message})
	}
	condition := func(expressions []plugin.ExpressionAccessor) plugin.ConditionEvaluator {
		return compiler.CompileCondition(expressions, options, environment.StoredExpressions)
	}
	messages := make([]plugin.ExpressionAccessor, len(validations))
	return validating.NewValidator(condition(validations), nil, condition(nil), condition(messages), p.Spec.FailurePolicy, nil)
}

// resource is the name of a kind in paths.
func resource(kind string) string {
	kind = strings.ToLower(kind)
	if stem, found := strings.CutSuffix(kind, "y"); found {
		return stem + "ies"
	}
	return kind + "s"
}

func (p *policy) matches(resource schema.GroupVersionResource) bool {
	return slices.ContainsFunc(p.Spec.MatchConstraints.ResourceRules, func(rule v1.NamedRuleWithOperations) bool {
		return slices.Contains(rule.APIGroups, resource.Group) && slices.Contains(rule.Resources, resource.Resource)
	})
}

func main() {
	var policies []policy
	documents(os.Args[1], func(kind string, text []byte) {
		if kind == "ValidatingAdmissionPolicy" {
			var read v1.ValidatingAdmissionPolicy
			if err := json.Unmarshal(text, &read); err != nil {
				log.Fatal(err)
			}
			policies = append(policies, policy{read, compile(read)})
		}
	})
	result := []broken{}
	for _, path := range must(filepath.Glob(filepath.Join(os.Args[2], "*.yaml"))) {
		var namespace corev1.Namespace
		documents(path, func(kind string, text []byte) {
			if kind == "Namespace" {
				if err := json.Unmarshal(text, &namespace); err != nil {
					log.Fatal(err)
				}
				return
			}
			object := &unstructured.Unstructured{}
			if err := object.UnmarshalJSON(text); err != nil {
				log.Fatal(err)
			}
			gvk := object.GroupVersionKind()
			gvr := gvk.GroupVersion().WithResource(resource(kind))
			attributes := admission.NewAttributesRecord(object, nil, gvk, object.GetNamespace(), object.GetName(), gvr, "", admission.Create, nil, false, nil)
			versioned := &admission.VersionedAttributes{Attributes: attributes, VersionedKind: gvk, VersionedObject: admission.NewLazyObject(object)}
			for _, policy := range policies {
				if !policy.matches(gvr) {
					continue
				}
				outcome := policy.validator.Validate(context.Background(), gvr, versioned, nil, &namespace, celconfig.RuntimeCELCostBudget, nil)
				for _, decision := range outcome.Decisions {
					if decision.Action == validating.ActionDeny {
						result = append(result, broken{object.GetNamespace(), object.GetName(), policy.Name})
						if os.Getenv("VAP_VERBOSE") != "" {
							log.Print(object.GetName(), " ", policy.Name, " ", decision.Message)
						}
					}
				}
			}
		})
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(err)
	}
}
