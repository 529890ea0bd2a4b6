package project

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// chain has itself in it.
type chain struct {
	Name string `json:"name"`
	Next *chain `json:"next"`
}

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
			Labels map[string]struct{ A int } `json:"labels"`
			Since  metav1.Time                `json:"since"`
			Raw    []byte                     `json:"raw"`
			Chain  chain                      `json:"chain"`
			Wait   time.Duration              `json:"wait"`
			Hidden int                        `json:"-"`
		} `json:"spec"`
	}
	leaf := func(t reflect.Type) bool { return t == reflect.TypeFor[metav1.ObjectMeta]() }
	var all []string
	for _, path := range Paths(reflect.TypeFor[of](), leaf) {
		all = append(all, strings.Join(path, "."))
	}
	assert.ElementsMatch(t, []string{
		"kind", "apiVersion", "metadata", "spec.containers.image", "spec.containers.ports.Port", "spec.labels", "spec.since",
		"spec.raw", "spec.chain.name", "spec.chain.next", "spec.wait",
	}, all)
}
