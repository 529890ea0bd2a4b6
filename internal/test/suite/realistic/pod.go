// Package realistic makes objects like those in real clusters, for benchmarks.
package realistic

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Pod returns the i-th pod of a cluster with some teams and nodes. It has two containers, a
// Deployment's labels and mounts, a status, and two field managers. It is about 6.5 KB as JSON
// and 4.3 KB as protobuf.
func Pod(i int) *corev1.Pod {
	app := fmt.Sprint("app-", i%200)
	now := created(i)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-7d9c5b7f%02d-%05d", app, i%7, i), Namespace: fmt.Sprint("team-", i%50), GenerateName: app + "-7d9c5b7f-",
		UID: types.UID(fmt.Sprintf("6f1d2c3b-0000-4000-8000-%012d", i)), ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: now,
		Labels: map[string]string{
			"app.kubernetes.io/name": app, "app.kubernetes.io/instance": app + "-prod", "app.kubernetes.io/managed-by": "Helm",
			"pod-template-hash": "7d9c5b7f", "team": fmt.Sprint("team-", i%50), "topology.kubernetes.io/zone": "eu-central-1a",
		},
		Annotations: map[string]string{
			"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "checksum/config": strings.Repeat("0123456789abcdef", 4),
			"kubectl.kubernetes.io/restartedAt": "2024-01-01T00:00:00Z",
		},
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-7d9c5b7f", UID: types.UID(fmt.Sprintf("7f1d2c3b-0000-4000-8000-%012d", i%200)),
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}},
	}}
	for _, manager := range []string{"kube-controller-manager", "kubelet"} {
		var owned strings.Builder
		for f := range 22 {
			fmt.Fprintf(&owned, `,"f:%s-field-%d":{".":{},"f:value":{}}`, manager[:4], f)
		}
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: manager, Operation: "Update", APIVersion: "v1", Time: &now, FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{}` + owned.String() + `}`),
		})
	}
	p.Spec = spec(app, fmt.Sprint("node-", i%500, ".internal.example.com"))
	p.Status = status(i)
	for c := range 2 {
		addContainer(p, app, i, c)
	}
	return p
}

func created(i int) metav1.Time { return metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0)) }

func spec(app, node string) corev1.PodSpec {
	return corev1.PodSpec{
		NodeName: node, ServiceAccountName: app, DeprecatedServiceAccount: app, RestartPolicy: "Always", DNSPolicy: "ClusterFirst", SchedulerName: "default-scheduler",
		TerminationGracePeriodSeconds: ptr.To[int64](30), SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: ptr.To(true)}, Priority: ptr.To[int32](0),
		EnableServiceLinks: ptr.To(true), PreemptionPolicy: ptr.To(corev1.PreemptLowerPriority),
		Tolerations: []corev1.Toleration{
			{Key: "node.kubernetes.io/not-ready", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)},
			{Key: "node.kubernetes.io/unreachable", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: ptr.To[int64](300)},
		},
		Volumes: []corev1.Volume{{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			DefaultMode: ptr.To[int32](420), Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: ptr.To[int64](3607)}}},
		}}}},
	}
}

func status(i int) corev1.PodStatus {
	now := created(i)
	s := corev1.PodStatus{Phase: "Running", HostIP: fmt.Sprint("10.0.0.", i%250), PodIP: fmt.Sprintf("10.%d.%d.7", i/250, i%250), QOSClass: "Burstable", StartTime: &now}
	s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	for _, kind := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: kind, Status: "True", LastTransitionTime: now})
	}
	return s
}

func addContainer(p *corev1.Pod, app string, i, c int) {
	image := fmt.Sprintf("registry.example.com/%s/%s:v1.2.%d", p.Namespace, app, c)
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
		Name: fmt.Sprint("c", c), Image: image, ImagePullPolicy: "IfNotPresent", TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: "File",
		Ports: []corev1.ContainerPort{{Name: fmt.Sprint("http-", c), ContainerPort: int32(8080 + c), Protocol: "TCP"}},
		Env:   []corev1.EnvVar{{Name: "APP_NAME", Value: app}, {Name: "LOG_LEVEL", Value: "info"}, {Name: "NODE_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "spec.nodeName"}}}},
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
		},
		VolumeMounts:  []corev1.VolumeMount{{Name: "kube-api-access", ReadOnly: true, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}},
		LivenessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080), Scheme: "HTTP"}}, PeriodSeconds: 10},
	})
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
		Name: fmt.Sprint("c", c), Ready: true, Started: ptr.To(true), Image: image, ImageID: image + "@sha256:" + strings.Repeat(fmt.Sprintf("%02x", i%200), 32),
		ContainerID: fmt.Sprintf("containerd://%064d", i*2+c), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: created(i)}},
	})
}

// Restarted returns a pod after the kubelet's report of a container's restart: with another
// version and status, and otherwise unchanged.
func Restarted(p *corev1.Pod, version int) *corev1.Pod {
	p = p.DeepCopy()
	at := created(version)
	p.ResourceVersion = fmt.Sprint(1_000_000_000 + version)
	p.Status.Conditions[1].LastTransitionTime, p.Status.Conditions[2].LastTransitionTime = at, at
	c := &p.Status.ContainerStatuses[0]
	c.RestartCount, c.ContainerID = int32(version), fmt.Sprintf("containerd://%064d", 1_000_000_000+version)
	c.State.Running.StartedAt = at
	return p
}
