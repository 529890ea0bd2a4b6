package kates_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

func TestAFunctionOfAnotherKindThanItsFieldIsAnErrorOfWatch(t *testing.T) {
	type snapshot struct {
		Ingresses []*networkingv1.Ingress
		Secrets   []*corev1.Secret
	}
	keys := func(*corev1.Service) []string { return nil }
	keep := kates.TransformOf(func(*corev1.Service) error { return nil })
	ref := kates.RefsOf("Ingresses", func(*corev1.Service) []types.NamespacedName { return nil })
	c := katestest.NewClient(t)
	for text, q := range map[string]kates.Query{
		`query "Ingresses": the function of its Key takes a *v1.Service, but the objects of "Ingresses" are of kind Ingress.networking.k8s.io`: {Name: "Ingresses", Key: kates.KeyOf(keys)},
		`query "Ingresses": the function of its Transform takes a *v1.Service`:                                                                 {Name: "Ingresses", Transform: keep},
		`query "Ingresses": the function of its Signal takes a *v1.Service`:                                                                    {Name: "Ingresses", Signal: kates.SignalOf(func(_, _ *corev1.Service) bool { return true })},
		`query "Secrets": the function of its reference 0, of "Ingresses", takes a *v1.Service`:                                                {Name: "Secrets", Refs: []kates.Ref{ref}},
		`query "Secrets": its Refs are empty`:                                                                                                  {Name: "Secrets", Refs: []kates.Ref{}},
	} {
		_, err := kates.WatchEach[snapshot](t.Context(), c, q)
		assert.ErrorContains(t, err, text)
		_, err = kates.Watch[snapshot](t.Context(), c, q)
		assert.ErrorContains(t, err, text)
	}
	_, err := kates.Watch[snapshot](t.Context(), c.With(kates.WithTransform(keep)))
	assert.ErrorContains(t, err, "the function of WithTransform takes a *v1.Service")
}

func TestAFunctionOfItsFieldsKindOrOfAnyKindIsFine(t *testing.T) {
	type own struct{ Metadata kates.ObjectMeta }
	type snapshot struct{ Services []*corev1.Service }
	for _, q := range []kates.Query{
		{Key: kates.KeyOf(func(*corev1.Service) []string { return nil })},
		{Key: kates.KeyOf(func(corev1.Service) []string { return nil })},
		{Key: kates.KeyOf(func(metav1.Object) []string { return nil })},
		{Key: kates.KeyOf(func(own) []string { return nil })},
		{Key: kates.KeyOf(func(*kates.PartialObjectMetadata) []string { return nil })},
		{Transform: kates.TransformOf(func(map[string]any) error { return nil })},
		{Signal: kates.SignalOf(func(_, _ *kates.Unstructured) bool { return true })},
	} {
		q.Name = "Services"
		s, err := kates.Watch[snapshot](t.Context(), katestest.NewClient(t), q)
		if assert.NoError(t, err) {
			s.Close()
		}
	}
}

func TestANilClientIsAnError(t *testing.T) {
	type snapshot struct{ Services []*corev1.Service }
	ctx := t.Context()
	_, watch := kates.Watch[snapshot](ctx, nil)
	_, each := kates.WatchEach[snapshot](ctx, nil)
	_, lister := kates.NewLister[*corev1.Service](ctx, nil, kates.Query{})
	_, get := kates.GetCached[corev1.Service](ctx, nil, "a", "b")
	for what, err := range map[string]error{
		"watch": watch, "watch each": each, "lister": lister, "get": get,
		"run":      kates.Run(ctx, nil, func(context.Context, *snapshot) error { return nil }),
		"run each": kates.RunEach(ctx, nil, func(context.Context, string, *snapshot) error { return nil }),
	} {
		assert.ErrorContains(t, err, "the client is nil", what)
	}
}

func TestANilChannelOfTriggersIsAnError(t *testing.T) {
	type snapshot struct{ Services []*corev1.Service }
	err := kates.Run(t.Context(), katestest.NewClient(t), func(context.Context, *snapshot) error { return nil },
		kates.WithTriggers[int](nil))
	assert.ErrorContains(t, err, "WithTriggers(nil)")
}
