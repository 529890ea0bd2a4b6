package workload

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Pod returns the i-th pod, as a Deployment's ReplicaSet makes it for an application. It has no
// status.
func Pod(i int) *corev1.Pod {
	app := i / perApp
	name := fmt.Sprintf("app-%04d", app)
	hash := fmt.Sprintf("%010x", app*2654435761%(1<<40))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: PodName(i), Namespace: Namespace(i),
			Labels: map[string]string{
				"app": name, "app.kubernetes.io/name": name,
				"app.kubernetes.io/managed-by": "Helm",
				"pod-template-hash":            hash,
			},
			Annotations: map[string]string{
				"prometheus.io/scrape": "true", "prometheus.io/port": "9090", "prometheus.io/path": "/metrics",
				"checksum/config": fmt.Sprintf("%064x", i*7919+1),
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: name + "-" + hash, UID: UID(app),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: corev1.PodSpec{
			NodeName:                      fmt.Sprintf("ip-10-%d-%d-%d.compute.internal", i%7, i%200, i%250),
			ServiceAccountName:            name,
			TerminationGracePeriodSeconds: new(int64(30)),
			Containers:                    []corev1.Container{appContainer(i, name)},
			Volumes:                       volumes(name),
			Tolerations:                   []corev1.Toleration{toleration("not-ready"), toleration("unreachable")},
		},
	}
}

// UID makes a UID from a number, in the form that a server uses.
func UID(n int) types.UID {
	return types.UID(fmt.Sprintf("%08x-9d2c-4f7a-8a51-%012x", n*40503%(1<<32), n*2654435761%(1<<48)))
}

func toleration(what string) corev1.Toleration {
	return corev1.Toleration{
		Key: "node.kubernetes.io/" + what, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300)),
	}
}

func image(name string) string {
	return "registry.example.com/platform/" + name + ":v1.14.2"
}

func appContainer(i int, name string) corev1.Container {
	return corev1.Container{
		Name: "app", Image: image(name),
		Args:  []string{"--config=/etc/app/config.yaml", "--log-format=json", "--shutdown-delay=15s"},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}},
		Env: []corev1.EnvVar{
			{Name: "POD_IP", ValueFrom: fieldRef("status.podIP")},
			{Name: "SHARD", Value: fmt.Sprint(i % perApp)},
		},
		Resources:      resources("250m", "512Mi", "1Gi"),
		ReadinessProbe: probe("/ready", 5),
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/app", ReadOnly: true},
			{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
	}
}

func fieldRef(path string) *corev1.EnvVarSource {
	return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}
}

func resources(cpu, request, limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(request)},
		Limits:   corev1.ResourceList{"memory": resource.MustParse(limit)},
	}
}

func probe(path string, period int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(8080)}},
		PeriodSeconds: period, TimeoutSeconds: 1, FailureThreshold: 3,
	}
}

func volumes(name string) []corev1.Volume {
	return []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: name + "-config"}}}},
		{Name: "kube-api-access", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			},
		}}},
	}
}

// podStatus is a kubelet's report of a running pod.
func podStatus(i int) corev1.PodStatus {
	at := metav1.Unix(1_760_000_000+int64(i), 0)
	ip := fmt.Sprintf("10.%d.%d.%d", i>>16&255, i>>8&255, i&255)
	host := fmt.Sprintf("10.%d.%d.%d", 100+i%7, i%200, i%250)
	s := corev1.PodStatus{
		Phase: corev1.PodRunning, QOSClass: corev1.PodQOSBurstable, StartTime: &at,
		PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}, HostIP: host, HostIPs: []corev1.HostIP{{IP: host}},
	}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		s.Conditions = append(s.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: at})
	}
	name := image(fmt.Sprintf("app-%04d", i/perApp))
	s.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "app", Image: name, Ready: true, Started: new(true),
		ImageID:     fmt.Sprintf("%s@sha256:%064x", name, 1+i/perApp),
		ContainerID: fmt.Sprintf("containerd://%064x", i+1),
		State:       corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}},
	}}
	return s
}
