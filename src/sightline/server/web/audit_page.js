"use strict";

/** An audit, or one of its explanations: which one, the address says. */
{
  const page = document.getElementById("page");
  sightline.ask(location.pathname.replace(/^\/audit/, "/audit/data")).then((data) => {
    document.title = `${data.title ?? document.title} · Sightline`;
    sightline.state = (data.systems ? sightline.showAudit : sightline.showReport)(page, data);
  }).catch((error) => page.replaceChildren(sightline.make("p", { role: "alert" }, error.message)));
}
