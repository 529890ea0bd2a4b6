// Command real starts kube-apiserver and etcd, which are built first if they are not cached, and
// writes an object.
package main

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kates-go/kates/kates/katestest/apiserver"
)

func main() {
	ctx := context.Background()
	cluster, err := apiserver.Start(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Stop()
	client, err := kubernetes.NewForConfig(cluster.Config)
	if err != nil {
		log.Fatal(err)
	}
	made, err := client.CoreV1().ConfigMaps("default").Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}}, metav1.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(made.Name, made.ResourceVersion != "")
	// Output: settings true
}
