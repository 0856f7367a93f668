"use strict";

{
  const data = JSON.parse(document.getElementById("data").textContent);
  const show = data.systems ? sightline.showAudit : data.pictures ? sightline.showIndex : sightline.showReport;
  sightline.state = show(document.getElementById("page"), data);
}
