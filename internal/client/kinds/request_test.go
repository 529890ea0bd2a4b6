package kinds

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kates-go/kates/internal/test/suite/kindstest"
)

func onMapper(mapper meta.RESTMapper) *Resolver {
	return New(mapper, nil, testclock.NewFakePassiveClock(time.Unix(1000, 0)))
}

func TestWithoutDiscoveryAMapperOfASchemeResolvesKinds(t *testing.T) {
	r := onMapper(kindstest.SchemeMapper(t))
	for arg, want := range map[string]string{
		"Service": servicesV1, "services": servicesV1, "SVC": servicesV1, "v1/Service": servicesV1, "services.v1.": servicesV1,
		"deployments": deploymentsV1, "Deployment.v1.apps": deploymentsV1, "deploy": deploymentsV1, "deploy.apps": deploymentsV1,
		"Deployment.v1beta1.apps": "apps/v1beta1 Deployment deployments namespace",
		"deployments.extensions":  "extensions/v1beta1 Deployment deployments namespace",
		"events":                  "v1 Event events namespace",
		"ing":                     "networking.k8s.io/v1 Ingress ingresses namespace",
		"ingresses.networking":    "networking.k8s.io/v1 Ingress ingresses namespace",
		"hpa":                     hpaV2,
	} {
		mapping, err := r.Kind(t.Context(), arg)
		if assert.NoError(t, err, arg) {
			assert.Equal(t, want, describeMapping(mapping), arg)
		}
	}
	for _, arg := range []string{"foo", "Deployment.v9.apps", "svc.apps", "deploy.v9.apps"} {
		var unknown *UnknownKindError
		_, err := r.Kind(t.Context(), arg)
		assert.ErrorAs(t, err, &unknown, arg)
	}
	mapping, err := r.GVK(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Event"})
	require.NoError(t, err)
	assert.Equal(t, "v1 Event events namespace", describeMapping(mapping))
	_, err = r.GVK(t.Context(), schema.GroupVersionKind{Version: "v1", Kind: "Deployment"})
	assert.Error(t, err, "v1 is the core group's, not any group's")
}

func TestTheMappersOrderOfVersionsDecides(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "example.com", Version: "v1"}, {Group: "example.com", Version: "v2"}})
	for _, version := range []string{"v1", "v2"} {
		mapper.Add(schema.GroupVersionKind{Group: "example.com", Version: version, Kind: "Host"}, meta.RESTScopeRoot)
	}
	for _, arg := range []string{"hosts", "Host", "host.example.com"} {
		mapping, err := onMapper(mapper).Kind(t.Context(), arg)
		require.NoError(t, err)
		assert.Equal(t, "example.com/v1 Host hosts root", describeMapping(mapping), arg)
	}
}

func TestAKindOfSeveralGroupsIsAmbiguousWithoutPriorities(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, group := range []string{"a.example.com", "b.example.com"} {
		mapper.Add(schema.GroupVersionKind{Group: group, Version: "v1", Kind: "Host"}, meta.RESTScopeNamespace)
	}
	_, err := onMapper(mapper).Kind(t.Context(), "hosts")
	require.Error(t, err)
	assert.True(t, meta.IsAmbiguousError(err))
	assert.ErrorContains(t, err, "b.example.com")
	assert.NotErrorIs(t, err, ErrIncompleteDiscovery)
	mapping, err := onMapper(mapper).Kind(t.Context(), "hosts.b")
	require.NoError(t, err)
	assert.Equal(t, "b.example.com/v1 Host hosts namespace", describeMapping(mapping))
}

func TestTheCoreGroupComesBeforeNewerVersionsOfOthers(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, gv := range []schema.GroupVersion{{Group: "a.example.com", Version: "v2"}, {Version: "v1"}} {
		mapper.Add(gv.WithKind("Event"), meta.RESTScopeNamespace)
	}
	mapping, err := onMapper(mapper).Kind(t.Context(), "events")
	require.NoError(t, err)
	assert.Equal(t, "v1 Event events namespace", describeMapping(mapping))
}

func TestAnObjectsKindIsAKindBeforeItIsAResourceName(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gv})
	mapper.AddSpecific(gv.WithKind("Datum"), gv.WithResource("data"), gv.WithResource("datum"), meta.RESTScopeNamespace)
	mapper.AddSpecific(gv.WithKind("Data"), gv.WithResource("records"), gv.WithResource("record"), meta.RESTScopeNamespace)
	r := onMapper(mapper)
	mapping, err := r.GVK(t.Context(), gv.WithKind("Data"))
	require.NoError(t, err)
	assert.Equal(t, "example.com/v1 Data records namespace", describeMapping(mapping))
	mapping, err = r.Kind(t.Context(), "Data.example.com")
	require.NoError(t, err)
	assert.Equal(t, "example.com/v1 Datum data namespace", describeMapping(mapping))
}

func TestAMapperOfIrregularNamesResolvesTheKindAsWritten(t *testing.T) {
	gv := schema.GroupVersion{Group: "example.com", Version: "v1"}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{gv})
	mapper.AddSpecific(gv.WithKind("Datum"), gv.WithResource("data"), gv.WithResource("item"), meta.RESTScopeNamespace)
	for _, arg := range []string{"data", "item", "ITEM.example.com", "Datum.example.com", "example.com/v1/Datum"} {
		mapping, err := onMapper(mapper).Kind(t.Context(), arg)
		require.NoError(t, err, arg)
		assert.Equal(t, "example.com/v1 Datum data namespace", describeMapping(mapping))
	}
}

// lyingMapper answers with another version than the one asked for, as a mapper
// that has cached an older server may.
type lyingMapper struct{ meta.RESTMapper }

func (m lyingMapper) KindsFor(resource schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	resource.Version = ""
	return m.RESTMapper.KindsFor(resource)
}

func (m lyingMapper) RESTMapping(gk schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	return m.RESTMapper.RESTMapping(gk)
}

func TestAVersionThatWasAskedForIsNeverReplaced(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{{Group: "apps", Version: "v1"}})
	mapper.Add(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, meta.RESTScopeNamespace)
	var unknown *UnknownKindError
	_, err := onMapper(lyingMapper{mapper}).GVK(t.Context(), schema.GroupVersionKind{Group: "apps", Version: "v2", Kind: "Deployment"})
	assert.ErrorAs(t, err, &unknown)
}

// countingMapper learns a kind when it is reset, or fails.
type countingMapper struct {
	meta.RESTMapper
	known   *meta.DefaultRESTMapper
	resets  int
	failure error
}

func newCountingMapper(failure error) *countingMapper {
	known := meta.NewDefaultRESTMapper(nil)
	return &countingMapper{RESTMapper: known, known: known, failure: failure}
}

func (m *countingMapper) Reset() {
	m.resets++
	m.known.Add(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Host"}, meta.RESTScopeNamespace)
}

func (m *countingMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	if m.failure != nil {
		return nil, m.failure
	}
	return m.known.KindsFor(r)
}

func TestAMapperIsResetOnAMissOncePerSecond(t *testing.T) {
	mapper := newCountingMapper(nil)
	clock := testclock.NewFakePassiveClock(time.Unix(1000, 0))
	r := New(mapper, nil, clock)
	_, err := r.Kind(t.Context(), "hosts")
	require.NoError(t, err)
	for range 5 {
		_, err = r.Kind(t.Context(), "foo")
		require.Error(t, err)
	}
	assert.Equal(t, 1, mapper.resets)
	clock.SetTime(clock.Now().Add(resetInterval))
	_, err = r.Kind(t.Context(), "foo")
	require.Error(t, err)
	assert.Equal(t, 2, mapper.resets)
	require.NoError(t, r.Invalidate())
	assert.Equal(t, 3, mapper.resets, "as often as asked to")
}

func TestAMapperThatFailsLeavesAbsenceInDoubt(t *testing.T) {
	mapper := newCountingMapper(errors.New("connection refused"))
	_, err := onMapper(mapper).Kind(t.Context(), "hosts")
	assert.ErrorIs(t, err, ErrIncompleteDiscovery)
	assert.ErrorIs(t, err, mapper.failure)
}
