package e2e

import (
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/internal/suite"
	"github.com/kates-go/kates/kates"
)

// TestSuite runs the scenarios that the unit tests run on a fake, and those that a fake is not enough for.
func TestSuite(t *testing.T) {
	foreign, err := dynamic.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	var mu sync.Mutex
	faults := map[testing.TB]*readFaults{}
	faultsOf := func(t testing.TB) *readFaults {
		mu.Lock()
		defer mu.Unlock()
		if faults[t] == nil {
			faults[t] = &readFaults{failing: map[string]bool{}, open: map[*openWatch]string{}}
		}
		return faults[t]
	}
	suite.Run(t, suite.Backend{
		Name: "real",
		Real: true,
		NewClient: func(t testing.TB, options ...kates.Option) *kates.Client {
			config := rest.CopyConfig(testCluster.Config)
			config.Wrap(faultsOf(t).wrap)
			client, err := kates.NewClientFromRESTConfig(config, options...)
			require.NoError(t, err)
			t.Cleanup(client.Close)
			return client
		},
		Foreign:   func(testing.TB) dynamic.Interface { return foreign },
		Namespace: newNamespace,
		FailReads: func(t testing.TB, resource string) func() { return faultsOf(t).fail(resource) },
	})
}

// newNamespace makes a namespace that stays: there is no controller that would end it.
func newNamespace(t testing.TB) string {
	t.Helper()
	client, err := kubernetes.NewForConfig(testCluster.Config)
	require.NoError(t, err)
	namespace, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "suite-"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return namespace.Name
}

// readFaults answers lists and watches of some resources with 503, and cuts those watches of them that are open.
type readFaults struct {
	mu      sync.Mutex
	failing map[string]bool
	open    map[*openWatch]string
}

func (f *readFaults) fail(resource string) (heal func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing[resource] = true
	for watch, of := range f.open {
		if of == resource {
			_ = watch.ReadCloser.Close()
		}
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.failing, resource)
	}
}

func (f *readFaults) wrap(next http.RoundTripper) http.RoundTripper {
	return &faultyTransport{next: next, faults: f}
}

// faultyTransport puts the faults between a client and its connections.
type faultyTransport struct {
	next   http.RoundTripper
	faults *readFaults
}

// WrappedRoundTripper lets the client close its idle connections.
func (t *faultyTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

// RoundTrip sends the request on, unless it is one that is to fail.
func (t *faultyTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	resource := path.Base(request.URL.Path)
	if request.Method != http.MethodGet {
		return t.next.RoundTrip(request)
	}
	if t.faults.fails(resource) {
		return unavailable(request), nil
	}
	response, err := t.next.RoundTrip(request)
	if err == nil && request.URL.Query().Has("watch") {
		t.faults.track(response, resource)
	}
	return response, err
}

func (f *readFaults) fails(resource string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failing[resource]
}

// track keeps a watch's body until it is closed, and cuts it at once if its resource has begun to fail meanwhile.
func (f *readFaults) track(response *http.Response, resource string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	watch := &openWatch{ReadCloser: response.Body, faults: f}
	response.Body = watch
	f.open[watch] = resource
	if f.failing[resource] {
		_ = watch.ReadCloser.Close()
	}
}

// openWatch is the body of a watch's response.
type openWatch struct {
	io.ReadCloser
	faults *readFaults
}

// Close also forgets the watch.
func (w *openWatch) Close() error {
	w.faults.mu.Lock()
	delete(w.faults.open, w)
	w.faults.mu.Unlock()
	return w.ReadCloser.Close()
}

func unavailable(request *http.Request) *http.Response {
	status := `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"ServiceUnavailable","message":"switched off by the test","code":503}`
	return &http.Response{
		Status:        "503 Service Unavailable",
		StatusCode:    http.StatusServiceUnavailable,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(status)),
		ContentLength: int64(len(status)),
		Request:       request,
	}
}
