package kates_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// unregistered is an API type that no scheme has.
type unregistered struct {
	kates.TypeMeta   `json:",inline"`
	kates.ObjectMeta `json:"metadata"`
	Status           struct{} `json:"status"`
}

func (u *unregistered) DeepCopyObject() runtime.Object { c := *u; return &c }

func TestAnObjectWithoutAKindIsAnErrorThatSaysTheCure(t *testing.T) {
	ctx, c, o := t.Context(), katestest.NewClient(t), &unregistered{ObjectMeta: kates.ObjectMeta{Name: "x"}}
	owner := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "o", Namespace: "default", UID: "u"}}
	_, set := kates.ModifyStatus(ctx, c, o, func(*unregistered) error { return nil })
	_, owned := c.ApplyOwned(ctx, kates.OwnedSet{Owner: owner, SetName: "s", Objects: []kates.Object{o}})
	for what, err := range map[string]error{
		"create": c.Create(ctx, o, nil), "conditions": c.SetConditions(ctx, o, nil), "status": set, "owned": owned,
	} {
		assert.ErrorContains(t, err, "a *kates_test.unregistered without a kind: fill in its apiVersion and kind, or register the type in the client's scheme (kates.WithScheme)", what)
	}
	assert.ErrorContains(t, c.Create(ctx, struct{}{}, nil), "a struct {} without a kind: fill in its apiVersion and kind")
	assert.ErrorContains(t, kates.SetControllerReference(o, &kates.Pod{}), "pass kates.InScheme")
}

func TestAFieldOfAnUnregisteredTypeIsAnErrorThatSaysTheCure(t *testing.T) {
	const cure = ", or register *kates_test.unregistered in the client's scheme (kates.WithScheme)"
	type untagged struct{ All []*unregistered }
	type tagged struct {
		All []*unregistered `kates:",optional"`
	}
	_, err := kates.Watch[untagged](t.Context(), katestest.NewClient(t))
	assert.ErrorContains(t, err, "says no kind: give it a tag `kates:\"KIND\"`, a Query of its name, or `kates:\"-\"`"+cure)
	_, err = kates.Watch[tagged](t.Context(), katestest.NewClient(t))
	assert.ErrorContains(t, err, "says a kind: give it a tag `kates:\"KIND\"`, or its query a Kind"+cure)
}

func TestAnUnknownKindOfAQueryHintsAtItsDefinitionAndOptional(t *testing.T) {
	type snapshot struct {
		Hosts []map[string]any `kates:"hosts.example.com"`
	}
	_, err := kates.Watch[snapshot](t.Context(), katestest.NewClient(t))
	assert.ErrorContains(t, err, `"hosts.example.com" (is a CustomResourceDefinition missing?); a query that may go without it is optional`)
}

func TestAnOwnedSetWithoutANameIsAnError(t *testing.T) {
	owner := &kates.ConfigMap{ObjectMeta: kates.ObjectMeta{Name: "o", UID: "u"}}
	_, err := katestest.NewClient(t).ApplyOwned(t.Context(), kates.OwnedSet{Owner: owner})
	assert.EqualError(t, err, "apply an owned set: it has no Name")
}

func TestAKubeconfigThatDoesNotExistIsAnErrorThatNamesTheField(t *testing.T) {
	_, err := kates.NewClient(kates.ClientConfig{Kubeconfig: t.TempDir() + "/none"})
	assert.ErrorContains(t, err, "ClientConfig.Kubeconfig")
}
