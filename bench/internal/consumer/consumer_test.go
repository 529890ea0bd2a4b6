package consumer

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kates-go/kates/bench/internal/workload"
)

// scripted is a consumer whose pod shows one mark after the other.
type scripted struct {
	signal
	marks []string
	at    int
}

func (s *scripted) Start(context.Context, *rest.Config) error { return nil }

func (s *scripted) Snapshot(context.Context) (View, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "b", Annotations: map[string]string{workload.Mark: s.marks[s.at]}}}
	if s.at < len(s.marks)-1 {
		s.at++
		s.set()
	}
	return View{Objects: 1, All: objects([]*corev1.Pod{pod})}, nil
}

// serve runs commands on a consumer.
func serve(t *testing.T, c Consumer, commands ...Command) (answers []Answer) {
	t.Helper()
	var in, out bytes.Buffer
	for _, c := range commands {
		require.NoError(t, json.NewEncoder(&in).Encode(c))
	}
	v := Variant{make: func() Consumer { return c }}
	require.NoError(t, Serve(t.Context(), v, &rest.Config{}, &in, &out))
	for d := json.NewDecoder(&out); d.More(); {
		var a Answer
		require.NoError(t, d.Decode(&a))
		answers = append(answers, a)
	}
	return answers
}

func TestARefreshSaysWhatItMisses(t *testing.T) {
	got := serve(t, &scripted{marks: []string{"1", "2"}},
		Command{Do: Refresh, Marks: map[string]string{"a/b": "2"}},
		Command{Do: Refresh, Marks: map[string]string{"a/b": "2"}},
		Command{Do: Refresh, Marks: map[string]string{"a/b": "2", "a/other": "2"}})
	require.Len(t, got, 3)
	assert.Equal(t, []int{1, 0, 1}, []int{got[0].Missing, got[1].Missing, got[2].Missing})
	assert.Positive(t, got[0].Seconds)
}

func TestChurnEndsWhenNothingIsStaleOrTimeIsUp(t *testing.T) {
	fresh := serve(t, &scripted{marks: []string{"1", "2", "3"}},
		Command{Do: Churn, Seconds: 0.001},
		Command{Do: Settle, Marks: map[string]string{"a/b": "3"}, Seconds: 30})
	assert.Zero(t, fresh[1].Missing)
	assert.Empty(t, fresh[1].Error)
	stale := serve(t, &scripted{marks: []string{"1"}},
		Command{Do: Churn},
		Command{Do: Settle, Marks: map[string]string{"a/b": "never"}, Seconds: 0.05})
	assert.Equal(t, 1, stale[1].Missing)
	assert.Equal(t, "there is no churn", serve(t, &scripted{marks: []string{"1"}}, Command{Do: Settle})[0].Error)
}

func TestMistakesAreAnswers(t *testing.T) {
	got := serve(t, &scripted{marks: []string{"1"}},
		Command{Do: "dance"}, Command{Do: EndProfile}, Command{Do: Await, Pod: "a/b", Seconds: 0.01}, Command{Do: Own, Times: 3})
	require.Len(t, got, 5, "Await has two answers")
	assert.Contains(t, got[0].Error, "there is no such command")
	assert.Contains(t, got[1].Error, "none was started")
	assert.Contains(t, got[3].Error, "no change of a/b")
	assert.Empty(t, got[4].Samples, "it does not write")
}

func TestVariantsAreFoundByName(t *testing.T) {
	some, err := Select("informers, kates")
	require.NoError(t, err)
	assert.Equal(t, []string{"kates", "informers"}, []string{some[0].Name, some[1].Name})
	all, err := Select("")
	require.NoError(t, err)
	for _, v := range Variants {
		isThere := slices.ContainsFunc(all, func(other Variant) bool { return other.Name == v.Name })
		assert.Equal(t, !v.Shared, isThere, v.Name)
	}
	_, err = Select("kates,other")
	require.ErrorContains(t, err, `there is no consumer "other", but: kates, `)
	names := map[string]bool{}
	for _, v := range Variants {
		assert.False(t, names[v.Name], v.Name)
		names[v.Name] = true
		assert.NotNil(t, v.make())
	}
}

func TestAViewGoesOverAllKindsAndStopsWhenAsked(t *testing.T) {
	typed := &Typed{Pods: []*corev1.Pod{{}, {}}, Services: []*corev1.Service{{}}, ConfigMaps: []*corev1.ConfigMap{{}}}
	view := typed.view()
	assert.Equal(t, 4, view.Objects)
	assert.Len(t, slices.Collect(view.All), 4)
	for range view.All {
		break
	}
	view.Clone()
	assert.Equal(t, typed.Pods, clones.Pods)
}

func TestStampsAreTimes(t *testing.T) {
	now := time.Now()
	at, err := workload.StampedAt(workload.Stamp(now))
	require.NoError(t, err)
	assert.True(t, now.Equal(at))
	for _, wrong := range []string{"", "t", "5", "tomorrow"} {
		_, err := workload.StampedAt(wrong)
		require.Error(t, err, wrong)
	}
	assert.True(t, strings.HasPrefix(string(workload.MarkPatch("x")), `{"metadata"`))
}
