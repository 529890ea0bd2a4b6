package conditions

import "fmt"

// The rules of the kinds that keep a number of pods. They are those of kubectl rollout status, and
// more careful in two points, as kstatus is: pods that are too many are waited for, and so is a
// condition that is False.

// deployment is complete when all pods, and no others, are of the newest template and available,
// and no condition denies that.
// https://kubernetes.io/docs/concepts/workloads/controllers/deployment/#deployment-status
func deployment(c content) (Phase, string) {
	want, pods := c.number("spec.replicas", 1), c.number("status.replicas", 0)
	updated, available := c.number("status.updatedReplicas", 0), c.number("status.availableReplicas", 0)
	progress, availability := c.aspect("Progressing"), c.aspect("Available")
	if progress.reason == "ProgressDeadlineExceeded" {
		return Failed, progress.saying("its rollout makes no progress")
	}
	var waitsFor string
	switch {
	case updated < want:
		waitsFor = fmt.Sprintf("%d of %d pods are updated", updated, want)
	case pods > updated:
		waitsFor = fmt.Sprintf("%d pods of older revisions are left", pods-updated)
	case pods > want:
		waitsFor = fmt.Sprintf("%d pods are too many", pods-want)
	case available < want:
		waitsFor = fmt.Sprintf("%d of %d pods are available", available, want)
	case progress.status == "False":
		return InProgress, progress.saying("its condition Progressing is false")
	case availability.status == "False":
		return InProgress, availability.saying("its condition Available is false")
	default:
		return Current, fmt.Sprintf("all %d pods are updated and available", want)
	}
	if c.flag("spec.paused") {
		waitsFor += ", and its rollout is paused"
	}
	return InProgress, c.without(waitsFor)
}

// without adds why pods cannot be made, if the status says so.
func (c content) without(waitsFor string) string {
	if a := c.aspect("ReplicaFailure"); a.status == "True" {
		return a.saying(waitsFor)
	}
	return waitsFor
}

// replicaSet is complete when it has its pods, and all are available.
// https://kubernetes.io/docs/concepts/workloads/controllers/replicaset/
func replicaSet(c content) (Phase, string) {
	want, pods := c.number("spec.replicas", 1), c.number("status.replicas", 0)
	available := c.number("status.availableReplicas", 0)
	switch {
	case pods < want:
		return InProgress, c.without(fmt.Sprintf("%d of %d pods exist", pods, want))
	case pods > want:
		return waits("%d pods are too many", pods-want)
	case available < want:
		return waits("%d of %d pods are available", available, want)
	}
	if a := c.aspect("ReplicaFailure"); a.status == "True" {
		return InProgress, a.saying("pods cannot be made or deleted")
	}
	return Current, fmt.Sprintf("all %d pods are available", want)
}

// statefulSet is complete when its pods are ready, and those from the partition on are updated.
// With OnDelete, the user decides when pods are updated, and nothing waits for that.
// https://kubernetes.io/docs/concepts/workloads/controllers/statefulset/#update-strategies
func statefulSet(c content) (Phase, string) {
	want, pods := c.number("spec.replicas", 1), c.number("status.replicas", 0)
	ready, updated := c.number("status.readyReplicas", 0), c.number("status.updatedReplicas", 0)
	available := c.number("status.availableReplicas", 0)
	partition := c.number("spec.updateStrategy.rollingUpdate.partition", 0)
	slow := c.number("spec.minReadySeconds", 0) > 0
	next := c.text("status.updateRevision")
	byUser, moves := c.text("spec.updateStrategy.type") == "OnDelete", c.text("status.currentRevision") != next
	switch {
	case pods < want:
		return waits("%d of %d pods exist", pods, want)
	case ready < want:
		return waits("%d of %d pods are ready", ready, want)
	case slow && available < want:
		return waits("%d of %d pods are available", available, want)
	case pods > want:
		return waits("%d pods are too many", pods-want)
	case byUser && moves:
		return Current, fmt.Sprintf("all %d pods are ready; a new revision comes to pods that are deleted (OnDelete)", want)
	case byUser:
		return Current, fmt.Sprintf("all %d pods are ready", want)
	case updated < want-partition:
		return waits("%d of %d pods are updated", updated, want-partition)
	case partition > 0:
		return Current, fmt.Sprintf("all %d pods are ready, and those from %d on are updated", want, partition)
	case moves:
		return waits("its rollout to revision %s ends", next)
	}
	return Current, fmt.Sprintf("all %d pods are updated and ready", want)
}

// daemonSet is complete when each node that should run a pod has one, and that is updated and
// available.
// https://kubernetes.io/docs/tasks/manage-daemon/update-daemon-set/
func daemonSet(c content) (Phase, string) {
	want, pods := c.number("status.desiredNumberScheduled", 0), c.number("status.currentNumberScheduled", 0)
	updated, available := c.number("status.updatedNumberScheduled", 0), c.number("status.numberAvailable", 0)
	byUser := c.text("spec.updateStrategy.type") == "OnDelete"
	switch {
	case pods < want:
		return waits("%d of %d nodes have a pod", pods, want)
	case updated < want && !byUser:
		return waits("%d of %d pods are updated", updated, want)
	case available < want:
		return waits("%d of %d pods are available", available, want)
	case byUser:
		return Current, fmt.Sprintf("all %d pods are available", want)
	}
	return Current, fmt.Sprintf("all %d pods are updated and available", want)
}

// disruptionBudget is current when as many pods are healthy as it wants. If they could not be
// counted, the numbers are old.
// https://kubernetes.io/docs/tasks/run-application/configure-pdb/
func disruptionBudget(c content) (Phase, string) {
	healthy, want := c.number("status.currentHealthy", 0), c.number("status.desiredHealthy", 0)
	switch a := c.aspect("DisruptionAllowed"); {
	case a.reason == "SyncFailed":
		return InProgress, a.saying("its controller could not count the pods")
	case healthy < want:
		return waits("%d pods are healthy, and %d should be", healthy, want)
	}
	return Current, fmt.Sprintf("%d pods are healthy, and %d should be", healthy, want)
}
