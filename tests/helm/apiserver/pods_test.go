package mutating

import (
	"context"
	"encoding/json"
	"os"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// One Pod as it is created, and the labels of its namespace.
type given struct {
	Pod       corev1.Pod        `json:"pod"`
	Namespace map[string]string `json:"namespace"`
}

type answer struct {
	Matches bool        `json:"matches"`
	Error   string      `json:"error,omitempty"`
	Pod     *corev1.Pod `json:"pod,omitempty"`
}

func read(t *testing.T, name string, into any) {
	text, err := os.ReadFile(os.Getenv(name))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestPods writes what the API server's own evaluator makes of each Pod.
func TestPods(t *testing.T) {
	var policy v1.MutatingAdmissionPolicy
	var pods map[string]given
	read(t, "POLICY", &policy)
	read(t, "PODS", &pods)
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	compiled := compilePolicy(&policy)
	if compiled.Error != nil {
		t.Fatal(compiled.Error)
	}
	answers := map[string]answer{}
	for name, each := range pods {
		answers[name] = admit(compiled, scheme, each)
	}
	text, err := json.Marshal(answers)
	if err == nil {
		err = os.WriteFile(os.Getenv("ANSWERS"), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func admit(compiled PolicyEvaluator, scheme *runtime.Scheme, each given) answer {
	kind := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: each.Namespace}}
	ctx := compiled.CompositedCompiler.CreateContext(context.Background())
	var object runtime.Object = &each.Pod
	each.Pod.Kind, each.Pod.APIVersion = "Pod", "v1"
	versioned := func() *admission.VersionedAttributes {
		attributes := admission.NewAttributesRecord(object, nil, kind, "shop", each.Pod.Name, resource, "",
			admission.Create, &metav1.CreateOptions{}, false, nil)
		return &admission.VersionedAttributes{Attributes: attributes, VersionedKind: kind, VersionedObject: object}
	}
	if compiled.Matcher != nil {
		matched := compiled.Matcher.Match(ctx, versioned(), nil, nil)
		if matched.Error != nil {
			return answer{Error: matched.Error.Error()}
		}
		if !matched.Matches {
			return answer{}
		}
	}
	for _, mutator := range compiled.Mutators {
		changed, err := mutator.Patch(ctx, patch.Request{
			MatchedResource: resource, VersionedAttributes: versioned(), Namespace: namespace,
			ObjectInterfaces:  admission.NewObjectInterfacesFromScheme(scheme),
			OptionalVariables: cel.OptionalVariableBindings{},
		}, celconfig.RuntimeCELCostBudget)
		if err != nil {
			return answer{Matches: true, Error: err.Error()}
		}
		object = changed
	}
	return answer{Matches: true, Pod: object.(*corev1.Pod)}
}
