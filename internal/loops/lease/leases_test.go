package lease

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/util/retry"
)

// leases is a fake with versions and conflicts, for one lease.
type leases struct {
	*fake.FakeDynamicClient
	out bytes.Buffer

	mu       sync.Mutex
	version  int
	err      error // of every request
	writeErr error // of every write
	lost     error // of every write, which is stored
	writes   int
}

func newLeases() *leases {
	l := &leases{FakeDynamicClient: fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{Resource: "LeaseList"})}
	l.PrependReactor("*", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err != nil {
			return true, nil, l.err
		}
		w, ok := a.(clienttesting.CreateAction) // an update is one, too
		if !ok {
			return false, nil, nil
		}
		if l.writeErr != nil {
			return true, nil, l.writeErr
		}
		u := w.GetObject().(*unstructured.Unstructured)
		if a.GetVerb() == "update" && u.GetResourceVersion() != strconv.Itoa(l.version) {
			return true, nil, apierrors.NewConflict(Resource.GroupResource(), u.GetName(), errors.New("it is another"))
		}
		l.version++
		l.writes++
		u.SetResourceVersion(strconv.Itoa(l.version))
		if l.lost != nil {
			store := l.Tracker().Create
			if a.GetVerb() == "update" {
				store = func(r schema.GroupVersionResource, o runtime.Object, ns string, _ ...metav1.CreateOptions) error {
					return l.Tracker().Update(r, o, ns)
				}
			}
			return true, nil, cmp.Or(store(Resource, u, a.GetNamespace()), l.lost)
		}
		return false, nil, nil
	})
	return l
}

func (l *leases) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

func (l *leases) read(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	o, err := l.Tracker().Get(Resource, "ns", "lease")
	require.NoError(t, err)
	return o.(*unstructured.Unstructured)
}

func (l *leases) holder(t *testing.T) string {
	t.Helper()
	holder, _, err := unstructured.NestedString(l.read(t).Object, "spec", "holderIdentity")
	require.NoError(t, err)
	return holder
}

// give gives the lease to another candidate, as if that had taken it.
func (l *leases) give(t *testing.T, holder string) {
	t.Helper()
	// A candidate that was elected a moment ago may be renewing it.
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		u := l.read(t).DeepCopy()
		if err := unstructured.SetNestedField(u.Object, holder, "spec", "holderIdentity"); err != nil {
			return err
		}
		_, err := l.Resource(Resource).Namespace("ns").Update(context.Background(), u, metav1.UpdateOptions{})
		return err
	}))
}

func (l *leases) config(identity string) Config {
	log := func(_, args string) { l.set(func() { l.out.WriteString(args + "\n") }) }
	return Config{Name: "lease", Release: true, Settings: Settings{
		Client: l, Namespace: "ns", Identity: identity, Logger: funcr.New(log, funcr.Options{}),
	}}
}

func (l *leases) stand(t *testing.T, identity string) *Candidate {
	t.Helper()
	c, err := Stand(t.Context(), l.config(identity))
	require.NoError(t, err)
	return c
}

func isClosed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}
