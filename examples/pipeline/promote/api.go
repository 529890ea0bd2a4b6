// Package promote brings a version of something through the stages of a Pipeline. The targets of a
// stage are objects of any kinds in any clusters: the program learns of them from the Pipelines.
package promote

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/fleet"
)

// Kind of the Pipelines, and their APIVersion: see crd.yaml.
const (
	APIVersion = "pipeline.kates.io/v1"
	Kind       = "Pipeline"
)

// Pipeline is a version and the stages that it goes through.
type Pipeline struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// Spec is what a Pipeline wants.
type Spec struct {
	Version string  `json:"version"`
	Stages  []Stage `json:"stages"`
}

// Stage gets the version when the one before is healthy.
type Stage struct {
	Name    string   `json:"name"`
	Targets []Target `json:"targets"`
}

// Target is an object that gets the version.
type Target struct {
	Cluster   string `json:"cluster"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Set       Set    `json:"set"`
}

// Set says which field has the version.
type Set struct {
	Path  string `json:"path"`
	Value string `json:"value,omitempty"`
}

// Status is how far a Pipeline is.
type Status struct {
	ObservedGeneration int64         `json:"observedGeneration,omitempty"`
	Stage              string        `json:"stage,omitempty"`
	Message            string        `json:"message,omitempty"`
	Stages             []StageStatus `json:"stages,omitempty"`
}

// StageStatus is how far a stage is.
type StageStatus struct {
	Name    string `json:"name"`
	Ready   int    `json:"ready"`
	Targets int    `json:"targets"`
	Message string `json:"message,omitempty"`
}

// of is the target as the fleet takes it.
func (t Target) of() fleet.Target {
	return fleet.Target{Cluster: t.Cluster, Kind: t.Kind, Namespace: t.Namespace, Name: t.Name}
}

// wants is the value that the target's field gets.
func (s Set) wants(version string) string {
	if s.Value == "" {
		return version
	}
	return strings.ReplaceAll(s.Value, "$(version)", version)
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// find returns where in an object the field is: a map or a list, and the key or index in it.
func (s Set) find(content map[string]any) (parent any, last string, err error) {
	steps := strings.Split(strings.TrimPrefix(s.Path, "/"), "/")
	parent = content
	for i, step := range steps {
		step = unescape.Replace(step)
		if i == len(steps)-1 {
			return parent, step, nil
		}
		if parent, err = child(parent, step); err != nil {
			return nil, "", fmt.Errorf("%s: %w", s.Path, err)
		}
	}
	return nil, "", fmt.Errorf("%q is no path", s.Path)
}

// Get returns the value of the field.
func (s Set) Get(content map[string]any) (string, error) {
	parent, last, err := s.find(content)
	if err != nil {
		return "", err
	}
	value, err := child(parent, last)
	text, ok := value.(string)
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", s.Path, err)
	case !ok:
		return "", fmt.Errorf("%s is no text", s.Path)
	}
	return text, nil
}

// put sets the field, which is there.
func (s Set) put(content map[string]any, value string) error {
	if _, err := s.Get(content); err != nil {
		return err
	}
	parent, last, err := s.find(content)
	if err != nil {
		return err
	}
	switch parent := parent.(type) {
	case map[string]any:
		parent[last] = value
	case []any:
		i, _ := strconv.Atoi(last)
		parent[i] = value
	}
	return nil
}

func child(parent any, step string) (any, error) {
	switch parent := parent.(type) {
	case map[string]any:
		if value, ok := parent[step]; ok {
			return value, nil
		}
	case []any:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(parent) {
			return parent[i], nil
		}
	}
	return nil, fmt.Errorf("there is no %q", step)
}
