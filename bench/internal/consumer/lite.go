package consumer

// PodLite has six fields of a pod: what a program that routes to pods reads.
type PodLite struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec struct {
		NodeName string `json:"nodeName"`
	} `json:"spec"`
	Status struct {
		PodIP  string `json:"podIP"`
		HostIP string `json:"hostIP"`
		Phase  string `json:"phase"`
	} `json:"status"`
}

// NamedLite has what names an object of another kind.
type NamedLite struct {
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
}

// lite has the same kinds as Typed, with some fields of each object.
type lite struct {
	Pods       []*PodLite   `kates:"pods"`
	Services   []*NamedLite `kates:"services"`
	ConfigMaps []*NamedLite `kates:"configmaps"`
}

func newKatesLite() func() Consumer {
	return func() Consumer {
		return &snapshotter[lite]{view: func(l *lite) View {
			return View{Objects: len(l.Pods) + len(l.Services) + len(l.ConfigMaps)}
		}}
	}
}
