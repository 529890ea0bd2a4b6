package project

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chain has itself in it.
type chain struct {
	Name string `json:"name"`
	Next *chain `json:"next"`
}

// many is a list of itself.
type many []many

func TestPathsLeadToEachFieldThatIsNoStruct(t *testing.T) {
	type inlined struct {
		Image string `json:"image"`
	}
	type of struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              *struct {
			Containers []*struct {
				inlined
				Ports []struct{ Port int } `json:"ports"`
			} `json:"containers"`
			Labels map[string]struct{ A int }  `json:"labels"`
			Since  metav1.Time                 `json:"since"`
			Raw    []byte                      `json:"raw"`
			Chain  chain                       `json:"chain"`
			Wait   time.Duration               `json:"wait"`
			State  struct{ Running *struct{} } `json:"state"`
			Addr   netip.Addr                  `json:"addr"`
			Many   many                        `json:"many"`
			Hidden int                         `json:"-"`
		} `json:"spec"`
	}
	leaf := func(t reflect.Type) bool { return t == reflect.TypeFor[metav1.ObjectMeta]() }
	var all []string
	for _, path := range Paths(reflect.TypeFor[of](), leaf) {
		all = append(all, strings.Join(path, "."))
	}
	assert.ElementsMatch(t, []string{
		"kind", "apiVersion", "metadata", "spec.containers.image", "spec.containers.ports.Port", "spec.labels", "spec.since",
		"spec.raw", "spec.chain.name", "spec.chain.next", "spec.wait", "spec.state.Running",
		"spec.addr", "spec.many",
	}, all)
}

func TestAPathIsResolvedWhateverItsLetterCase(t *testing.T) {
	pod := reflect.TypeFor[corev1.Pod]()
	for from, want := range map[string]string{
		"Spec.NodeName": "spec.nodeName", "spec.containers.IMAGE": "spec.containers.image", "metadata.labels.Any": "metadata.labels.Any",
		"spec.nowhere": "", "Status.StartTime.x": "status.startTime.x",
	} {
		got, ok := Resolve(pod, strings.Split(from, "."))
		assert.Equal(t, want != "", ok, from)
		assert.Equal(t, want, strings.Join(got, "."), from)
	}
}
