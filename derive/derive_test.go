package derive

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type name = types.NamespacedName

// world is the snapshot of these tests.
type world struct {
	Pods   []*corev1.Pod
	Rules  []rule
	Suffix string
}

type rule struct {
	Name  string
	App   string
	Value int
}

func pod(name, app, ip string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": app}}, Status: corev1.PodStatus{PodIP: ip}}
}

func TestSmoke(t *testing.T) {
	g := New[world]("smoke", Verified())
	pods := Objects(g, "pods", func(w *world) []*corev1.Pod { return w.Pods })
	rules := Slice(g, "rules", func(w *world) []rule { return w.Rules }, func(r rule) string { return r.Name })
	suffix := Input(g, "suffix", func(w *world) string { return w.Suffix })
	byApp := GroupBy(pods, "by app", func(_ name, p *corev1.Pod) []string { return []string{p.Labels["app"]} })
	labeled := ByLabels(pods, "labels", func(_ name, p *corev1.Pod) (string, map[string]string) { return p.Namespace, p.Labels })
	selecting := BySelector(rules, "selectors", func(_ string, r rule) (string, labels.Selector) {
		return "ns", labels.SelectorFromSet(labels.Set{"app": r.App})
	})
	out := Map(rules, "out", func(r *Reader, k string, x rule) (string, error) {
		s, err := suffix.Get(r)
		if err != nil {
			return "", err
		}
		text := fmt.Sprint(x.Value, s)
		for k, p := range byApp.Members(r, x.App).All() {
			text += " " + k.Name + "=" + p.Status.PodIP
		}
		text += fmt.Sprint(" ", labeled.Select(r, "ns", labels.SelectorFromSet(labels.Set{"app": x.App})).Len())
		return text, nil
	})
	perPod := Map(pods, "per pod", func(r *Reader, k name, p *corev1.Pod) (int, error) {
		n := 0
		for _, x := range selecting.Matching(r, "ns", p.Labels).All() {
			n += x.Value
		}
		return n, nil
	})
	ports := FlatMap(pods, "ports", func(r *Reader, k name, p *corev1.Pod, put func(int, string)) error {
		for i := range len(p.Status.PodIP) {
			put(i, p.Status.PodIP[:i])
		}
		return nil
	})
	keys := byApp.Keys()
	sum := Compute(g, "sum", func(r *Reader) (int, error) {
		n := ports.Len(r)
		for _, x := range perPod.All(r) {
			n += x
		}
		return n + 1000*keys.Len(r), nil
	})
	changes := ChangesOf(out)
	w := world{Pods: []*corev1.Pod{pod("a", "x", "1"), pod("b", "y", "22"), pod("c", "x", "333")}, Rules: []rule{{"r", "x", 5}, {"s", "y", 7}}, Suffix: "!"}
	r, err := g.Update(&w)
	require.NoError(t, err)
	got := map[string]string{}
	for k, v := range out.All(r) {
		got[k] = v
	}
	assert.Equal(t, map[string]string{"r": "5! a=1 c=333 2", "s": "7! b=22 1"}, got)
	n, err := sum.Get(r)
	require.NoError(t, err)
	assert.Equal(t, 17+6+2000, n)
	for ch := range changes.All(r) {
		assert.Nil(t, ch.Old)
	}
	changes.Done()
	w.Pods = []*corev1.Pod{w.Pods[0], pod("b", "x", "22"), w.Pods[2]}
	r, err = g.Update(&w)
	require.NoError(t, err)
	for ch := range changes.All(r) {
		fmt.Println(ch.Key, *ch.Old, *ch.New)
	}
	fmt.Printf("%+v\n", g.Explain("per pod", "ns/b"))
	fmt.Printf("%+v\n", g.Explain("ports", "ns/b/1"))
	fmt.Printf("%+v\n", g.Explain("pods", "ns/b"))
	for _, n := range g.Stats().Nodes {
		fmt.Printf("%+v\n", n)
	}
}
