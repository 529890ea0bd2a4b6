package podlogs

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// state is what the pod's status says of a container.
type state int

const (
	unknown state = iota // nobody has looked
	waiting              // it has not begun, or is about to begin again
	running
	ended  // for good
	absent // the pod has no such container
	gone   // there is no pod of that UID
)

// sight is what a look at a pod has shown of a container.
type sight struct {
	state    state
	restarts int32
	replaced bool // another pod has the name of one that is gone
}

// see reads the status of a pod.
func see(pod *corev1.Pod, name string) sight {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses,
		pod.Status.EphemeralContainerStatuses)
	over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	if _, ok := find(pod, name); !ok {
		return sight{state: absent}
	}
	i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		if over {
			return sight{state: ended}
		}
		return sight{state: waiting}
	}
	now := sight{restarts: statuses[i].RestartCount}
	dead := statuses[i].State.Terminated
	switch {
	case over, dead != nil && (pod.DeletionTimestamp != nil || !restarts(pod, name, dead.ExitCode)):
		now.state = ended
	case statuses[i].State.Running != nil:
		now.state = running
	default:
		now.state = waiting
	}
	return now
}

// restarts reports whether the kubelet starts a container again that has ended so. See
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy.
func restarts(pod *corev1.Pod, name string, exitCode int32) bool {
	container, _ := find(pod, name)
	policy := pod.Spec.RestartPolicy
	switch {
	case container.kind == ephemeral:
		return false
	case container.RestartPolicy != nil:
		policy = corev1.RestartPolicy(*container.RestartPolicy)
	case container.kind == initial && policy != corev1.RestartPolicyNever:
		policy = corev1.RestartPolicyOnFailure // until it has succeeded once
	}
	if slices.ContainsFunc(container.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
		return applies(r, exitCode)
	}) {
		return true
	}
	return policy == corev1.RestartPolicyAlways || policy == "" ||
		policy == corev1.RestartPolicyOnFailure && exitCode != 0
}

// applies reports whether a rule is about an exit code. All rules there are restart something.
func applies(rule corev1.ContainerRestartRule, exitCode int32) bool {
	if rule.ExitCodes == nil {
		return false
	}
	listed := slices.Contains(rule.ExitCodes.Values, exitCode)
	switch rule.ExitCodes.Operator {
	case corev1.ContainerRestartRuleOnExitCodesOpIn:
		return listed
	case corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return !listed
	}
	return false
}

// container is one of a pod's.
type container struct {
	corev1.Container
	kind kind
}

// kind is in which list of its pod a container is.
type kind int

const (
	regular kind = iota
	initial
	ephemeral
)

// find returns a container of a pod.
func find(pod *corev1.Pod, name string) (container, bool) {
	for _, c := range containers(pod) {
		if c.Name == name {
			return c, true
		}
	}
	return container{}, false
}

func containers(pod *corev1.Pod) (all []container) {
	for _, c := range pod.Spec.InitContainers {
		all = append(all, container{c, initial})
	}
	for _, c := range pod.Spec.Containers {
		all = append(all, container{c, regular})
	}
	for _, c := range pod.Spec.EphemeralContainers {
		all = append(all, container{corev1.Container(c.EphemeralContainerCommon), ephemeral})
	}
	return all
}

// Containers returns the names of a pod's containers, in the order in which they are started.
func Containers(pod *corev1.Pod) (names []string) {
	for _, c := range containers(pod) {
		names = append(names, c.Name)
	}
	return names
}
