package fleet

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kates-go/kates/kates"
)

// failingMapper knows no kinds while it fails.
type failingMapper struct {
	meta.RESTMapper
	fails atomic.Bool
}

func (m *failingMapper) ResourcesFor(r schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	if m.fails.Load() {
		return nil, errors.New("discovery fails")
	}
	return m.RESTMapper.ResourcesFor(r)
}

func (m *failingMapper) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	if m.fails.Load() {
		return nil, errors.New("discovery fails")
	}
	return m.RESTMapper.KindsFor(r)
}

func (m *failingMapper) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	if m.fails.Load() {
		return schema.GroupVersionKind{}, errors.New("discovery fails")
	}
	return m.RESTMapper.KindFor(r)
}

func (m *failingMapper) RESTMapping(k schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if m.fails.Load() {
		return nil, errors.New("discovery fails")
	}
	return m.RESTMapper.RESTMapping(k, versions...)
}

func TestAChangeThatIsNotNeededAnyMoreIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newCluster(t, "1", targetMap("x", "one"))
		mapper := &failingMapper{RESTMapper: k.Mapper}
		client, err := kates.NewClientFromDynamic(k.Dynamic, mapper)
		require.NoError(t, err)
		t.Cleanup(client.Close)
		f := newFleet(t, Options{})
		require.NoError(t, f.Set(Member{Name: "a", Client: client}))
		synctest.Wait()
		targets := f.Targets(TargetOptions{Grace: -1})
		r := ensure(t, targets, "o", cmTarget("x", "one"))
		mapper.fails.Store(true)
		_, err = targets.Want("other", cmTarget("y", "two"))
		require.NoError(t, err)
		atRest()
		require.ErrorContains(t, r.Err(), "discovery fails")
		targets.Drop("other")
		mapper.fails.Store(false)
		atRest()
		assert.NoError(t, r.Err())
		assert.NoError(t, targets.Status().Err())
	})
}
