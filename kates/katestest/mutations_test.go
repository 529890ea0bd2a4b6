package katestest_test

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/katestest"
)

// recorder is a test that collects its errors and its cleanups.
type recorder struct {
	testing.TB
	errors   []string
	cleanups []func()
}

var clock = regexp.MustCompile(` \(\d\d:\d\d:\d\d\.\d{3}\)`)

func (r *recorder) Helper()          {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Error(args ...any) {
	r.errors = append(r.errors, clock.ReplaceAllString(fmt.Sprint(args...), ""))
}

// end ends the test.
func (r *recorder) end() {
	for _, f := range slices.Backward(r.cleanups) {
		f()
	}
	r.cleanups = nil
}

func TestG10TheDetectorNamesTheObjectAndFieldThatSomebodyMutated(t *testing.T) {
	type snap struct {
		Services   []*corev1.Service
		ConfigMaps []map[string]any `kates:"configmaps"`
	}
	inner := &recorder{TB: t}
	client := katestest.NewClient(t,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "untouched"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cm"}, Data: map[string]string{"a": "b"}},
	).With(katestest.DetectMutations(inner))
	snapshots, err := kates.Watch[snap](t.Context(), client)
	require.NoError(t, err)
	for s, err := range snapshots.All(t.Context()) {
		require.NoError(t, err)
		s.Services[1].Spec.Ports[0].Port = 81
		s.Services[1].Labels = map[string]string{"new": "label"}
		s.ConfigMaps[0]["data"].(map[string]any)["a"] = "c"
		break
	}
	inner.end()
	const when = ": first seen when the test ended; unchanged in snapshot 1 of katestest_test.snap"
	assert.ElementsMatch(t, []string{
		`somebody wrote to a shared object: Service default/web of query "Services": metadata.labels, spec.ports[0].port` + when,
		`somebody wrote to a shared object: ConfigMap default/cm of query "ConfigMaps": data.a` + when,
	}, inner.errors)
}

func TestG10TheDetectorSeesWhatReadersHandOut(t *testing.T) {
	inner := &recorder{TB: t}
	client := katestest.NewClient(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"a": "b"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Data: map[string]string{"a": "b"}},
	).With(katestest.DetectMutations(inner))
	typed, err := kates.NewLister[*corev1.ConfigMap](t.Context(), client, kates.Query{Name: "Typed"})
	require.NoError(t, err)
	untyped, err := kates.NewLister[*kates.Unstructured](t.Context(), client, kates.Query{Kind: "configmaps"})
	require.NoError(t, err)
	for range 2 { // each value is seen once
		cm, err := typed.Get("default", "a")
		require.NoError(t, err)
		cm.Data["a"] = "c"
		all, err := untyped.List("", nil)
		require.NoError(t, err)
		require.Len(t, all, 2)
		all[1].SetLabels(map[string]string{"new": "label"})
	}
	inner.end()
	assert.ElementsMatch(t, []string{
		`somebody wrote to a shared object: ConfigMap default/a of query "Typed": data.a: ` +
			`first seen in answer 2 of a lister of "Typed"; unchanged when it was handed out first`,
		`somebody wrote to a shared object: ConfigMap default/b of query "configmaps": metadata.labels: ` +
			`first seen in answer 2 of a lister of "configmaps"; unchanged in answer 1 of a lister of "configmaps"`,
	}, inner.errors)
}

// ModifyStatus cannot tell an object of a snapshot that was changed in place from an unchanged one.
func TestG10AFakeOfATestDetectsAStatusThatWasSetInPlace(t *testing.T) {
	type snap struct{ Services []*corev1.Service }
	for name, want := range map[string]struct {
		client func(testing.TB, *corev1.Service) *kates.Client
		found  bool
	}{
		"New": {found: true, client: func(t testing.TB, s *corev1.Service) *kates.Client {
			return katestest.New(t, katestest.WithObjects(s)).Client
		}},
		"NewClient": {found: true, client: func(t testing.TB, s *corev1.Service) *kates.Client {
			return katestest.NewClient(t, s)
		}},
		"switched off": {client: func(t testing.TB, s *corev1.Service) *kates.Client {
			return katestest.New(t, katestest.WithObjects(s), katestest.WithoutMutationDetector()).Client
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inner := &recorder{TB: t}
			client := want.client(inner, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}})
			snapshots, err := kates.Watch[snap](t.Context(), client)
			require.NoError(t, err)
			for s, err := range snapshots.All(t.Context()) {
				require.NoError(t, err)
				s.Services[0].Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
				_, err := kates.ModifyStatus(t.Context(), client, s.Services[0], func(now *corev1.Service) error {
					now.Status = s.Services[0].Status
					return nil
				})
				require.NoError(t, err)
				break
			}
			inner.end()
			var errors []string
			if want.found {
				errors = []string{`somebody wrote to a shared object: Service default/web of query "Services": status.loadBalancer.ingress: ` +
					`first seen when the test ended; unchanged in snapshot 1 of katestest_test.snap`}
			}
			assert.Equal(t, errors, inner.errors)
		})
	}
}
