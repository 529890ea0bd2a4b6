package kates_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// deletions counts the deletions that a fake was asked to do.
func deletions(fake *katestest.Fake) (n int) {
	for _, a := range fake.Dynamic.Actions() {
		if a.GetVerb() == "delete" {
			n++
		}
	}
	return n
}

// TestASelectorThatIsWrittenNeverSelectsEverything: the API's parsers take " " and "," as
// selectors of everything. "app=web " + variable is an error, or selects what it says.
func TestASelectorThatIsWrittenNeverSelectsEverything(t *testing.T) {
	fake := katestest.New(t, katestest.WithObjects(configMap("a"), configMap("b")))
	c := fake.Client
	for _, written := range []string{" ", "\t", "\n ", ",", " ,", ",,", "a b", "=", "!", "a in", "a=b=c", "a in (b", "a,,b"} {
		for name, query := range map[string]kates.Query{
			"label":     {Kind: "cm", LabelSelector: written},
			"field":     {Kind: "cm", FieldSelector: written},
			"namespace": {Kind: "cm", NamespaceSelector: written},
			"any label": {Kind: "cm", AnyOf: []kates.Selection{{LabelSelector: written}}},
			"any field": {Kind: "cm", AnyOf: []kates.Selection{{FieldSelector: written}}},
		} {
			if written == "=" && (name == "field" || name == "any field") {
				continue // the field without a name, which the server refuses
			}
			if written == "a=b=c" && (name == "field" || name == "any field") {
				continue // a value with a "="
			}
			assert.ErrorContains(t, c.DeleteAll(t.Context(), query), "selector", "%s selector %q", name, written)
			assert.ErrorContains(t, c.List(t.Context(), query, &[]*kates.ConfigMap{}), "selector", "%s selector %q", name, written)
			query.Name = "ConfigMaps"
			_, err := c.Watch(t.Context(), query)
			assert.ErrorContains(t, err, "selector", "%s selector %q", name, written)
		}
	}
	assert.Zero(t, deletions(fake))
	reader, err := kates.NewLister[*kates.ConfigMap](t.Context(), c, kates.Query{})
	require.NoError(t, err)
	defer reader.Close()
	all, err := reader.List("", nil)
	require.NoError(t, err)
	assert.Len(t, all, 2)
}

// TestDeleteAllDeletesNothingWhereTheQueryWouldNotNarrowIt: a namespace does not narrow nodes,
// and only watches know which objects are named.
func TestDeleteAllDeletesNothingWhereTheQueryWouldNotNarrowIt(t *testing.T) {
	node := &kates.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	fake := katestest.New(t, katestest.WithObjects(node, configMap("x")))
	c := fake.Client
	for want, query := range map[string]kates.Query{
		"nodes are in no namespace": {Kind: "nodes", Namespace: "prod"},
		"are in no namespace":       {Kind: "no", Namespaces: []string{"prod"}},
		"leave the namespace out":   {Kind: "Node", Namespaces: []string{}},
		"referred to":               {Kind: "cm", Refs: []kates.Ref{}},
	} {
		assert.ErrorContains(t, c.DeleteAll(t.Context(), query), want)
	}
	require.NoError(t, c.DeleteAll(t.Context(), kates.Query{Kind: "cm", Namespaces: []string{}}))
	assert.Zero(t, deletions(fake))
	require.NoError(t, c.DeleteAll(t.Context(), kates.Query{Kind: "nodes"}))
	assert.Equal(t, 1, deletions(fake))
}

// TestAGracePeriodIsNeverRoundedDownToAtOnce: a pod deleted with a grace period of 0 is gone
// before its containers are.
func TestAGracePeriodIsNeverRoundedDownToAtOnce(t *testing.T) {
	for given, want := range map[time.Duration]int64{
		0: 0, time.Nanosecond: 1, time.Second / 2: 1, time.Second: 1, 1500 * time.Millisecond: 2, time.Minute: 60,
	} {
		fake := katestest.New(t, katestest.WithObjects(configMap("x")))
		require.NoError(t, fake.Client.Delete(t.Context(), configMap("x"), nil, kates.GracePeriod(given)))
		for _, a := range fake.Dynamic.Actions() {
			if d, ok := a.(clienttesting.DeleteAction); ok {
				assert.Equal(t, want, *d.GetDeleteOptions().GracePeriodSeconds, given.String())
			}
		}
	}
}

// TestWaitForDoesNotWaitForWhatCanBeNoKind: under a context without an end it would wait for
// ever.
func TestWaitForDoesNotWaitForWhatCanBeNoKind(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, kind := range []string{"", "a/b/c/d", ".apps", "apps/v1/"} {
		err := katestest.NewClient(t).WaitFor(ctx, kind)
		assert.Error(t, err)
		assert.NotErrorIs(t, err, context.DeadlineExceeded, "%q", kind)
	}
}

func TestAClientOfNothingIsAnError(t *testing.T) {
	_, err := kates.NewClientFromRESTConfig(nil)
	assert.ErrorContains(t, err, "rest.Config")
	_, err = kates.NewClientFromDynamic(nil, nil)
	assert.Error(t, err)
}
