"use strict";

/** An audit, or one of its explanations: which one, the address says. */
{
  const page = document.getElementById("page");
  sightline.ask(location.pathname.replace(/^\/audit/, "/audit/data")).then((data) => {
    if (data.title) document.title = `${data.title} · Sightline`;
    sightline.state = (data.systems ? sightline.showAudit : sightline.showReport)(page, data);
  }).catch((error) => page.replaceChildren(sightline.make("p", { role: "alert" }, error.message)));
}
