package project

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"
)

// lite is what programs want of a pod.
type lite struct {
	Metadata struct {
		Name              string            `json:"name"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp *metav1.Time      `json:"deletionTimestamp"`
		Created           string            `json:"creationTimestamp"`
	} `json:"metadata"`
	Spec struct {
		NodeName   string `json:"nodeName"`
		Containers []struct {
			Image     string                 `json:"image"`
			Ports     []corev1.ContainerPort `json:"ports"`
			Resources struct {
				Limits   map[string]string   `json:"limits"`
				Requests corev1.ResourceList `json:"requests"`
			} `json:"resources"`
			Liveness *struct {
				HTTPGet *struct {
					Port any `json:"port"`
				} `json:"httpGet"`
			} `json:"livenessProbe"`
			Args []string `json:"args"`
		} `json:"containers"`
		Volumes []struct {
			Name     string `json:"name"`
			HostPath *struct {
				Path *string `json:"path"`
			} `json:"hostPath"`
		} `json:"volumes"`
		Grace       *int64         `json:"terminationGracePeriodSeconds"`
		HostNetwork *bool          `json:"hostNetwork"`
		Priority    int            `json:"priority"`
		Affinity    map[string]any `json:"-"`
	} `json:"spec"`
	Status *struct {
		PodIP string          `json:"podIP"`
		Phase corev1.PodPhase `json:"phase"`
		IPs   []corev1.PodIP  `json:"podIPs"`
	} `json:"status"`
}

// whole has a field that only a conversion of the whole object fills.
type whole struct {
	Kind     string                `json:"kind"`
	Metadata *metav1.ObjectMeta    `json:"metadata"`
	Spec     json.RawMessage       `json:"spec"`
	Status   corev1.PodStatus      `json:"status"`
	More     map[string]complex128 `json:"-"`
}

type inlined struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Common `json:",inline"`
	} `json:"spec"`
}

type Common struct {
	NodeName string `json:"nodeName"`
}

// anyCase has its names in other letter cases than JSON, as encoding/json allows.
type anyCase struct {
	Metadata struct{ Name, Namespace string }
	Spec     struct {
		NodeName    string
		HOSTNETWORK bool
	}
}

type rollout struct {
	Spec struct {
		Replicas int32 `json:"replicas"`
		Strategy *struct {
			Rolling *struct {
				Surge string `json:"-"`
				Max   *any   `json:"maxUnavailable"`
			} `json:"rollingUpdate"`
		} `json:"strategy"`
		Template struct {
			Spec struct {
				Containers []*struct {
					Name string `json:"name"`
				} `json:"containers"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type endpoints struct {
	Endpoints []struct {
		Addresses  []string `json:"addresses"`
		Conditions struct {
			Ready *bool `json:"ready"`
		} `json:"conditions"`
	} `json:"endpoints"`
	Ports []struct {
		Name *string `json:"name"`
		Port *int32  `json:"port"`
	} `json:"ports"`
}

type secret struct {
	Data map[string][]byte `json:"data"`
	Type string            `json:"type"`
}

type service struct {
	Spec struct {
		Ports []struct {
			TargetPort intstr.IntOrString `json:"targetPort"`
			Port       uint16             `json:"port"`
		} `json:"ports"`
		Selector map[string]string `json:"selector"`
	} `json:"spec"`
}

type ingress struct {
	Spec struct {
		Rules []struct {
			Host string `json:"host"`
			HTTP *struct {
				Paths []struct {
					Path    string                      `json:"path"`
					Backend networkingv1.IngressBackend `json:"backend"`
				} `json:"paths"`
			} `json:"http"`
		} `json:"rules"`
	} `json:"spec"`
}

func filler(seed uint64) *randfill.Filler {
	r := rand.New(rand.NewPCG(seed, 0))
	return randfill.NewWithSeed(int64(seed)).NilChance(0.3).NumElements(0, 3).MaxDepth(14).Funcs(
		func(s *string, c randfill.Continue) { *s = []string{"", "a", "bé", `"\`, "long text"}[r.IntN(5)] },
		func(t *metav1.Time, c randfill.Continue) {
			if *t = metav1.Unix(r.Int64N(4e9), 0); r.IntN(4) == 0 {
				*t = metav1.Time{}
			}
		},
		func(t **metav1.Time, c randfill.Continue) {
			if *t = nil; r.IntN(3) > 0 {
				at := metav1.Unix(r.Int64N(4e9), 0)
				*t = &at // one of zero would be null
			}
		},
		func(t *metav1.MicroTime, c randfill.Continue) { *t = metav1.NewMicroTime(time.Unix(r.Int64N(4e9), 0)) },
		func(q *resource.Quantity, c randfill.Continue) {
			if *q = *resource.NewMilliQuantity(r.Int64N(1e6), resource.DecimalSI); r.IntN(4) == 0 {
				*q = resource.Quantity{}
			}
		},
		func(i *intstr.IntOrString, c randfill.Continue) {
			if *i = intstr.FromInt32(r.Int32N(99)); r.IntN(2) == 0 {
				*i = intstr.FromString("10%")
			}
		},
		func(n *int32, c randfill.Continue) { *n = []int32{0, 1, 80, 65535}[r.IntN(4)] },
		func(b *[]byte, c randfill.Continue) {
			if *b = nil; r.IntN(2) == 0 {
				*b = []byte{byte(r.IntN(256)), 'x'} // a Go type of the API has an empty one, and JSON none
			}
		},
		func(n *int64, c randfill.Continue) { *n = []int64{0, 1, 1 << 40, -3}[r.IntN(4)] },
		func(f *metav1.FieldsV1, c randfill.Continue) { f.SetRawString("{}") },
		func(e *runtime.RawExtension, c randfill.Continue) {
			if *e = (runtime.RawExtension{}); r.IntN(2) == 0 {
				e.Raw = []byte(`{"a":1}`)
			}
		},
		func(e **runtime.RawExtension, c randfill.Continue) {
			if *e = nil; r.IntN(2) == 0 {
				*e = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
			}
		},
	)
}

// pairs are targets with the types of their kinds, and whether they are decoded directly.
// embedded has a struct that is not exported, under a name.
type embedded struct {
	named `json:"metadata"`
}

type named struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations"`
}

// unset has a pointer that encoding/json cannot set.
type unset struct {
	*named `json:"metadata"`
}

var pairs = []struct {
	target, source any
	direct         bool
}{
	{lite{}, corev1.Pod{}, true},
	{whole{}, corev1.Pod{}, false},
	{inlined{}, corev1.Pod{}, true},
	{anyCase{}, corev1.Pod{}, true},
	{embedded{}, corev1.Pod{}, true},
	{rollout{}, appsv1.Deployment{}, true},
	{endpoints{}, discoveryv1.EndpointSlice{}, true},
	{secret{}, corev1.Secret{}, true},
	{service{}, corev1.Service{}, true},
	{ingress{}, networkingv1.Ingress{}, true},
}

// TestAProjectionIsWhatJSONMakesOfTheObject: of random objects, both ways give one value.
func TestAProjectionIsWhatJSONMakesOfTheObject(t *testing.T) {
	for _, pair := range pairs {
		target, source := reflect.TypeOf(pair.target), reflect.TypeOf(pair.source)
		t.Run(target.Name(), func(t *testing.T) {
			plan, err := Compile(target, source)
			require.NoError(t, err)
			for seed := range uint64(120) {
				from := reflect.New(source).Interface()
				filler(seed).Fill(from)
				if seed%3 == 0 {
					from.(metav1.Object).SetCreationTimestamp(metav1.Time{})
				}
				raw, err := from.(interface{ Marshal() ([]byte, error) }).Marshal()
				require.NoError(t, err)
				got, want := reflect.New(target).Interface(), reflect.New(target).Interface()
				require.NoError(t, plan.Protobuf(raw, got), seed)
				// what the wire brings: an empty list and none are one
				again := reflect.New(source).Interface()
				require.NoError(t, again.(protobuf).Unmarshal(raw))
				require.NoError(t, throughJSON(again, want))
				require.Equal(t, want, got, seed)
			}
		})
	}
}

func TestAFieldThatTheKindHasNotIsAnErrorThatNamesIt(t *testing.T) {
	for _, c := range []struct {
		target any
		says   string
	}{
		{struct {
			Spec struct {
				NodeNme string `json:"nodeNme"`
			} `json:"spec"`
		}{}, "a Pod has no field spec.nodeNme: nodeName is near"},
		{unset{}, "its field metadata is a pointer to a type that is not exported"},
		{struct{ Spce struct{} }{}, "a Pod has no field Spce: spec is near"},
		{struct{ Something struct{} }{}, "a Pod has no field Something"},
		{struct {
			Spec struct {
				NodeName int `json:"nodeName"`
			} `json:"spec"`
		}{}, "spec.nodeName of a Pod is a string, which a int cannot hold"},
		{struct {
			Spec []string `json:"spec"`
		}{}, "spec of a Pod is an object"},
		{struct {
			Spec struct {
				Containers map[string]string `json:"containers"`
			} `json:"spec"`
		}{}, "spec.containers of a Pod is a list"},
		{struct {
			Spec struct {
				Containers []struct {
					Image bool `json:"image"`
				} `json:"containers"`
			} `json:"spec"`
		}{}, "spec.containers.image of a Pod is a string"},
	} {
		_, err := Compile(reflect.TypeOf(c.target), reflect.TypeFor[corev1.Pod]())
		assert.ErrorContains(t, err, c.says)
	}
}

func FuzzProtobuf(f *testing.F) {
	plan, err := Compile(reflect.TypeFor[lite](), reflect.TypeFor[corev1.Pod]())
	require.NoError(f, err)
	for seed := range uint64(5) {
		var pod corev1.Pod
		filler(seed).Fill(&pod)
		raw, err := pod.Marshal()
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var into lite
		_ = plan.Protobuf(raw, &into) // whatever it is, nothing panics
	})
}

func BenchmarkDecode(b *testing.B) {
	type six struct {
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
		Spec struct {
			NodeName    string `json:"nodeName"`
			HostNetwork bool   `json:"hostNetwork"`
		} `json:"spec"`
		Status struct {
			PodIP string `json:"podIP"`
			Phase string `json:"phase"`
		} `json:"status"`
	}
	plan, err := Compile(reflect.TypeFor[six](), reflect.TypeFor[corev1.Pod]())
	require.NoError(b, err)
	pod := &corev1.Pod{}
	pod.Name, pod.Namespace = "a", "b"
	for range 3 {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: "c", Image: "registry.example.com/image:1", Env: make([]corev1.EnvVar, 20), Args: strings.Fields(strings.Repeat("an-argument ", 20)),
		})
	}
	raw, err := pod.Marshal()
	require.NoError(b, err)
	b.Run("six fields", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var into six
			if err := plan.Protobuf(raw, &into); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var into corev1.Pod
			if err := into.Unmarshal(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}
