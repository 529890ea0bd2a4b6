package katestest_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kates-go/kates/internal/test/suite"
	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// TestSuite runs the scenarios that the e2e tests also run on a real API server.
func TestSuite(t *testing.T) {
	fakes := &fakes{byTest: map[testing.TB]*suiteFake{}}
	var namespaces atomic.Int64
	suite.Run(t, suite.Backend{
		Name: "fake",
		NewClient: func(t testing.TB, options ...kates.Option) *kates.Client {
			fake := fakes.of(t)
			client, err := kates.NewClientFromDynamic(fake.Dynamic, fake.Mapper, options...)
			require.NoError(t, err)
			t.Cleanup(client.Close)
			return client
		},
		Foreign:   func(t testing.TB) dynamic.Interface { return fakes.of(t).Dynamic },
		Namespace: func(testing.TB) string { return fmt.Sprintf("ns-%d", namespaces.Add(1)) },
		FailReads: func(t testing.TB, resource string) func() { return fakes.of(t).failReads(resource) },
	})
}

// fakes has one fake for each test. All clients of the test share it.
type fakes struct {
	mu     sync.Mutex
	byTest map[testing.TB]*suiteFake
}

func (f *fakes) of(t testing.TB) *suiteFake {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fake := f.byTest[t]; fake != nil {
		return fake
	}
	fake := &suiteFake{Fake: katestest.New(t, katestest.WithKinds(
		katestest.Kind{APIVersion: "getambassador.io/v3alpha1", Kind: "Host"},
		katestest.Kind{APIVersion: "example.kates.io/v1", Kind: "Tenant", ClusterScoped: true}))}
	fake.Dynamic.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := fake.failure(action)
		return err != nil, nil, err
	})
	fake.Dynamic.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		err := fake.failure(action)
		return err != nil, nil, err
	})
	f.byTest[t] = fake
	return fake
}

// suiteFake is a fake whose lists and watches can be made to fail.
type suiteFake struct {
	*katestest.Fake
	failing sync.Map // key: resource
}

func (f *suiteFake) failure(action clienttesting.Action) error {
	if _, failing := f.failing.Load(action.GetResource().Resource); failing {
		return apierrors.NewServiceUnavailable("switched off by the test")
	}
	return nil
}

func (f *suiteFake) failReads(resource string) (heal func()) {
	f.failing.Store(resource, true)
	return func() { f.failing.Delete(resource) }
}
