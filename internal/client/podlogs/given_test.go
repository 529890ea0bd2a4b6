package podlogs

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
)

var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func pieceAt(at time.Time, text string) piece {
	return piece{raw: []byte(at.Format(time.RFC3339Nano) + " " + text), at: at}
}

func TestLinesOfOneTimeAreToldApart(t *testing.T) {
	g := newGiven()
	for _, text := range []string{"a", "a", "b"} {
		g.add(g.line(pieceAt(start, text)))
	}
	r := g.replay()
	for i, text := range []string{"b", "a", "a"} {
		assert.True(t, r.repeats(g.line(pieceAt(start, text))), "%d", i)
	}
	assert.False(t, r.repeats(g.line(pieceAt(start, "a"))), "a third one is new")
	assert.False(t, r.repeats(g.line(pieceAt(start, "b"))), "what comes after it is new")
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	g := newGiven()
	for i := range 3 * mostRemembered { // in one second
		g.add(g.line(pieceAt(start.Add(time.Duration(i)), fmt.Sprint(i))))
	}
	assert.LessOrEqual(t, len(g.lines), mostRemembered)
	r := g.replay()
	for i := range 3 * mostRemembered {
		at := start.Add(time.Duration(i))
		if !r.repeats(g.line(pieceAt(at, fmt.Sprint(i)))) {
			t.Fatalf("line %d comes twice", i)
		}
	}
	assert.False(t, r.repeats(g.line(pieceAt(start.Add(time.Second), "new"))))
	g.add(g.line(pieceAt(start.Add(time.Hour), "late")))
	assert.Len(t, g.lines, 1, "what no stream repeats is forgotten")
}

func TestAContainerHasEndedIfItIsNotStartedAgain(t *testing.T) {
	always, never := corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever
	rule := corev1.ContainerRestartRule{
		Action: corev1.ContainerRestartRuleActionRestart,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{
			Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42},
		},
	}
	pod := func(p corev1.RestartPolicy, edit ...func(*corev1.Pod)) *corev1.Pod {
		pod := &corev1.Pod{}
		pod.Spec.RestartPolicy = p
		pod.Spec.Containers = []corev1.Container{{Name: "app"}}
		for _, e := range edit {
			e(pod)
		}
		return pod
	}
	initial := func(policy *corev1.ContainerRestartPolicy) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "app", RestartPolicy: policy}}
			p.Spec.Containers = nil
		}
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &p.CreationTimestamp }
	ruled := func(p *corev1.Pod) {
		p.Spec.Containers[0].RestartPolicy = &never
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{rule}
	}
	succeeded := func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
	debug := func(p *corev1.Pod) {
		p.Spec.Containers = nil
		e := corev1.EphemeralContainer{}
		e.Name = "app"
		p.Spec.EphemeralContainers = []corev1.EphemeralContainer{e}
	}
	for name, c := range map[string]struct {
		pod  *corev1.Pod
		code int32
		want state
	}{
		"always":                {pod("Always"), 0, waiting},
		"by default always":     {pod(""), 1, waiting},
		"never":                 {pod("Never"), 1, ended},
		"on failure, succeeded": {pod("OnFailure"), 0, ended},
		"on failure, failed":    {pod("OnFailure"), 1, waiting},
		"deleted":               {pod("Always", deleted), 1, ended},
		"the pod has ended":     {pod("Always", succeeded), 1, ended},
		"init, succeeded":       {pod("Always", initial(nil)), 0, ended},
		"init, failed":          {pod("Always", initial(nil)), 1, waiting},
		"init, failed, never":   {pod("Never", initial(nil)), 1, ended},
		"sidecar":               {pod("Never", initial(&always)), 0, waiting},
		"a rule":                {pod("Always", ruled), 42, waiting},
		"no rule":               {pod("Always", ruled), 1, ended},
		"ephemeral":             {pod("Always", debug), 1, ended},
	} {
		status := corev1.ContainerStatus{Name: "app", RestartCount: 3}
		status.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: c.code}
		c.pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		assert.Equal(t, sight{state: c.want, restarts: 3}, see(c.pod, "app"), name)
		assert.Equal(t, absent, see(c.pod, "other").state, name)
	}
	assert.Equal(t, waiting, see(pod("Always"), "app").state, "it has not begun")
}
