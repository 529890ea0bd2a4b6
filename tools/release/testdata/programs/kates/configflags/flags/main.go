// Command flags makes a client from the flags that kubectl has.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/spf13/pflag"

	"github.com/kates-go/kates/kates"
	"github.com/kates-go/kates/kates/configflags"
	"github.com/kates-go/kates/kates/katestest"
)

func main() {
	web := &kates.Service{}
	web.Namespace, web.Name = "blue", "web"
	server, err := katestest.StartServer(katestest.WithObjects(web))
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	if err := os.Setenv("KUBECONFIG", os.DevNull); err != nil {
		log.Fatal(err)
	}
	config := configflags.NewConfigFlags(true)
	set := pflag.NewFlagSet("flags", pflag.ContinueOnError)
	config.AddFlags(set)
	if err := set.Parse([]string{"--server", server.Config.Host, "--namespace", "blue"}); err != nil {
		log.Fatal(err)
	}
	client, err := configflags.NewClientFromConfigFlags(config)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var got kates.Service
	if err := client.Get(context.Background(), &kates.Service{ObjectMeta: kates.ObjectMeta{Name: "web"}}, &got); err != nil {
		log.Fatal(err)
	}
	fmt.Println(got.Namespace, got.Name)
	// Output: blue web
}
