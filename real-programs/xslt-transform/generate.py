"""Writes orders.xml (SIZE orders) and report.xsl."""
import random
import sys

draw = random.Random(int(sys.argv[1]))
with open("orders.xml", "w") as file:
    file.write("<orders>\n")
    for number in range(int(sys.argv[2])):
        file.write('<order id="%d"><customer>customer %d</customer>' % (number, draw.randrange(500)))
        for _ in range(draw.randrange(1, 6)):
            file.write('<item price="%d">product %d</item>' % (draw.randrange(1000), draw.randrange(5000)))
        file.write("</order>\n")
    file.write("</orders>\n")
with open("report.xsl", "w") as file:
    file.write('''<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
<xsl:key name="of" match="order" use="customer"/>
<xsl:template match="/orders">
  <report>
    <xsl:for-each select="order[generate-id() = generate-id(key('of', customer)[1])]">
      <xsl:sort select="customer"/>
      <customer name="{customer}" orders="{count(key('of', customer))}" sum="{sum(key('of', customer)/item/@price)}">
        <xsl:apply-templates select="key('of', customer)/item"><xsl:sort select="."/></xsl:apply-templates>
      </customer>
    </xsl:for-each>
  </report>
</xsl:template>
<xsl:template match="item"><product><xsl:value-of select="concat(., ' at ', @price)"/></product></xsl:template>
</xsl:stylesheet>
''')
