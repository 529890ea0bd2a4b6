package testserver

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kates-go/kates/internal/base/shardrange"
	"github.com/kates-go/kates/kates/katestest/internal/testserver/kinds"
)

// selection is which objects a list or a watch wants.
type selection struct {
	labels labels.Selector
	fields fields.Selector
	shard  shardrange.Shard
}

func (s selection) everything() bool { return s.labels.Empty() && s.fields.Empty() }

// ServeShards makes the server send a share of the objects where a list or watch asks for one, as
// one with the feature gate ShardedListAndWatch does (KEP-5866). Without it the server ignores the
// parameter.
func (s *Server) ServeShards() { s.shards.Store(true) }

// shardOf is the share that a list or a watch asks for.
func (s *Server) shardOf(q *request) (shard shardrange.Shard, err error) {
	if text := q.query.Get("shardSelector"); text != "" && s.shards.Load() {
		if shard, err = shardrange.Parse(text); err != nil {
			return shard, fmt.Errorf("invalid shard selector: %w", err)
		}
	}
	return shard, nil
}

func selectionOf(q *request) (s selection, err error) {
	if s.labels, err = labels.Parse(q.query.Get("labelSelector")); err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", err))
	}
	if s.fields, err = fields.ParseSelector(q.query.Get("fieldSelector")); err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	for _, r := range s.fields.Requirements() {
		switch known := slices.Contains(q.kind.Rules.Fields, r.Field); {
		case r.Field == "metadata.name", r.Field == "metadata.namespace" && (q.kind.Namespaced || q.kind.Custom == nil && q.kind.Rules.Fields == nil), known:
		default:
			says := fmt.Sprintf("field label not supported: %s", r.Field)
			switch {
			case q.kind.GroupKind().String() == "Job.batch":
				says = fmt.Sprintf("field label %q not supported for Job", r.Field)
			case q.kind.Custom == nil && q.kind.Rules.Fields == nil:
				says = fmt.Sprintf("%q is not a known field selector: only %q, %q", r.Field, "metadata.name", "metadata.namespace")
			}
			return s, apierrors.NewBadRequest(says)
		}
	}
	if q.name != "" {
		s.fields = fields.AndSelectors(s.fields, fields.OneTermEqualSelector("metadata.name", q.name))
	}
	return s, nil
}

// selects reports whether an object is wanted.
func (s selection) selects(k *kinds.Kind, content map[string]any) bool {
	if content == nil {
		return false
	}
	content = k.Shown(content)
	o := unstructured.Unstructured{Object: content}
	if !s.labels.Matches(labels.Set(o.GetLabels())) || !s.shard.Has(o.GetNamespace(), string(o.GetUID())) {
		return false
	}
	for _, r := range s.fields.Requirements() {
		equal := value(k, content, r.Field) == r.Value
		if equal == (r.Operator == "!=") {
			return false
		}
	}
	return true
}

// value is what a field selector compares.
func value(k *kinds.Kind, content map[string]any, field string) string {
	if k.Storage == "events" && field == "source" {
		field = "source.component"
	}
	v, ok, err := unstructured.NestedFieldNoCopy(content, strings.Split(field, ".")...)
	if !ok || err != nil || v == nil {
		return zero[k.GroupKind().String()+"."+field]
	}
	return fmt.Sprint(v)
}

// zero are the values of fields that are numbers or booleans, where an object does not have them.
var zero = map[string]string{
	"Job.batch.status.successful": "0", "Node.spec.unschedulable": "false", "Pod.spec.hostNetwork": "false",
	"ReplicaSet.apps.status.replicas": "0", "ReplicationController.status.replicas": "0",
}
