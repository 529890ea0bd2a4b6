package kinds

import (
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// converters make content of one version of a kind out of that of another one. All other versions
// of a kind have the same fields.
var converters = map[[2]schema.GroupVersionKind]func(map[string]any){
	{coreEvent, newEvent}: func(c map[string]any) { rename(c, eventNames, false) },
	{newEvent, coreEvent}: func(c map[string]any) { rename(c, eventNames, true) },
	{hpaV2, hpaV1}:        toHPAV1,
	{hpaV1, hpaV2}:        toHPAV2,
}

var (
	coreEvent = schema.GroupVersionKind{Version: "v1", Kind: "Event"}
	newEvent  = schema.GroupVersionKind{Group: "events.k8s.io", Version: "v1", Kind: "Event"}
	hpaV1     = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "HorizontalPodAutoscaler"}
	hpaV2     = schema.GroupVersionKind{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}
)

// storedAs are the versions in which built-in kinds with differing versions are stored.
var storedAs = map[schema.GroupVersionKind]schema.GroupVersionKind{newEvent: coreEvent, hpaV1: hpaV2}

// Convert returns content of one version of a kind as another version has it. It changes only a
// copy.
func Convert(c map[string]any, from, to schema.GroupVersionKind) map[string]any {
	convert := converters[[2]schema.GroupVersionKind{from, to}]
	if convert == nil {
		return c
	}
	c = runtime.DeepCopyJSON(c)
	convert(c)
	return c
}

// StoredAs is the version in which objects of the kind are stored.
func (k *Kind) StoredAs() schema.GroupVersionKind {
	as := k.GroupVersionKind
	if k.Custom != nil {
		as.Version = k.Custom.StoredVersion
	} else if other, is := storedAs[as]; is {
		as = other
	}
	return as
}

// Shown is stored content as the kind's version has it.
func (k *Kind) Shown(c map[string]any) map[string]any {
	if k.Custom != nil {
		return k.Custom.shown(c)
	}
	if as, other := storedAs[k.GroupVersionKind]; other && c != nil {
		return Convert(c, as, k.GroupVersionKind)
	}
	return c
}

// Stored is content as it is stored. It may change the content.
func (k *Kind) Stored(c map[string]any) map[string]any {
	if k.Custom != nil {
		return k.Custom.stored(c)
	}
	if as, other := storedAs[k.GroupVersionKind]; other && c != nil {
		c = Convert(c, k.GroupVersionKind, as)
		c["apiVersion"] = as.GroupVersion().String()
	}
	return c
}

// eventNames are the fields of events that have other names in their newer group.
var eventNames = []struct {
	core, newer string
	required    any // what the core version has where there is nothing
}{
	{"count", "deprecatedCount", nil},
	{"firstTimestamp", "deprecatedFirstTimestamp", nil},
	{"lastTimestamp", "deprecatedLastTimestamp", nil},
	{"source", "deprecatedSource", nil},
	{"message", "note", nil},
	{"involvedObject", "regarding", nil},
	{"reportingComponent", "reportingController", ""},
	{"reportingInstance", "reportingInstance", ""},
}

func rename(c map[string]any, names []struct {
	core, newer string
	required    any
}, toCore bool) {
	for _, n := range names {
		from, to := n.core, n.newer
		if toCore {
			from, to = to, from
		}
		value, there := c[from]
		delete(c, from)
		switch {
		case toCore && !there && n.required != nil:
			c[to] = n.required
		case there && (toCore || n.required == nil || value != n.required):
			c[to] = value
		}
	}
}

// What the first version of autoscalers has no fields for is kept in annotations.
const (
	metricsAnnotation  = "autoscaling.alpha.kubernetes.io/metrics"
	behaviorAnnotation = "autoscaling.alpha.kubernetes.io/behavior"
)

func toHPAV1(c map[string]any) {
	spec, status := at(c, "spec"), at(c, "status")
	var others []any
	metrics, _ := spec["metrics"].([]any)
	for _, m := range metrics {
		m, _ := m.(map[string]any)
		if cpu := at(m, "resource"); cpu["name"] == "cpu" && at(cpu, "target")["type"] == "Utilization" && spec["targetCPUUtilizationPercentage"] == nil {
			spec["targetCPUUtilizationPercentage"] = at(cpu, "target")["averageUtilization"]
			continue
		}
		others = append(others, m)
	}
	delete(spec, "metrics")
	keepInAnnotation(c, metricsAnnotation, others, len(others) > 0)
	if behavior, there := spec["behavior"]; there {
		delete(spec, "behavior")
		keepInAnnotation(c, behaviorAnnotation, behavior, true)
	}
	if status != nil {
		for _, m := range list(status, "currentMetrics") {
			m, _ := m.(map[string]any)
			if cpu := at(m, "resource"); cpu["name"] == "cpu" && at(cpu, "current")["averageUtilization"] != nil {
				status["currentCPUUtilizationPercentage"] = at(cpu, "current")["averageUtilization"]
			}
		}
		delete(status, "currentMetrics")
		delete(status, "conditions")
		set(status, int64(0), "currentReplicas")
	}
}

func toHPAV2(c map[string]any) {
	spec, status := at(c, "spec"), at(c, "status")
	var metrics []any
	if cpu, there := spec["targetCPUUtilizationPercentage"]; there {
		delete(spec, "targetCPUUtilizationPercentage")
		metrics = append(metrics, map[string]any{"type": "Resource", "resource": map[string]any{
			"name": "cpu", "target": map[string]any{"type": "Utilization", "averageUtilization": cpu}}})
	}
	var others []any
	takeFromAnnotation(c, metricsAnnotation, &others)
	if metrics = append(metrics, others...); metrics != nil {
		spec["metrics"] = metrics
	}
	var behavior map[string]any
	if takeFromAnnotation(c, behaviorAnnotation, &behavior); behavior != nil {
		spec["behavior"] = behavior
	}
	if status != nil {
		status["currentMetrics"] = nil
		if cpu, there := status["currentCPUUtilizationPercentage"]; there {
			delete(status, "currentCPUUtilizationPercentage")
			status["currentMetrics"] = []any{map[string]any{"type": "Resource", "resource": map[string]any{
				"name": "cpu", "current": map[string]any{"averageUtilization": cpu}}}}
		}
		if status["currentReplicas"] == int64(0) {
			delete(status, "currentReplicas")
		}
	}
}

func list(c map[string]any, name string) []any {
	all, _ := c[name].([]any)
	return all
}

func keepInAnnotation(c map[string]any, name string, value any, there bool) {
	if !there {
		return
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return // it is JSON
	}
	o := &unstructured.Unstructured{Object: c}
	annotations := maps.Clone(o.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[name] = string(raw)
	o.SetAnnotations(annotations)
}

func takeFromAnnotation(c map[string]any, name string, into any) {
	o := &unstructured.Unstructured{Object: c}
	annotations := maps.Clone(o.GetAnnotations())
	text, there := annotations[name]
	if !there || utiljson.Unmarshal([]byte(text), into) != nil {
		return // a user's own text stays as it is
	}
	if delete(annotations, name); len(annotations) == 0 {
		annotations = nil // none are left out, not empty
	}
	o.SetAnnotations(annotations)
}
